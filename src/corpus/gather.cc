// SPDX-License-Identifier: Apache-2.0
#include "corpus/gather.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/large_memory.h"
#include "base/parallel.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "corpus/memory_gate.h"
#include "corpus/state.h"
#include "trace/trace_reader.h"

namespace culprit::corpus {
namespace {

using Pieces = std::vector<std::unique_ptr<Piece>>;  // by collector; null: missing

// What became of one trace: its pieces, or why there are none.
struct Gathered {
  Pieces pieces;
  std::string unreadable;
  uint64_t used = 0;
  uint64_t made = 0;
  bool read = false;
};

// Hands out 0..count-1 to threads and takes what they made of each in order: the
// thread that brings the next one takes it and all that stand ready behind it,
// while the others go on. Nobody runs ahead by more than `window`.
template <class Made>
class InOrder {
 public:
  InOrder(size_t count, size_t window, std::function<void(size_t, Made)> take)
      : count_(count), window_(window), take_(std::move(take)) {}

  std::optional<size_t> Next() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return next_ >= count_ || next_ < taken_ + window_; });
    if (next_ >= count_) return std::nullopt;
    return next_++;
  }

  void Give(size_t index, Made made) {
    std::unique_lock lock(mutex_);
    ready_.emplace(index, std::move(made));
    // Somebody is at it already and will see this one.
    if (taking_) return;
    taking_ = true;
    for (auto it = ready_.find(taken_); it != ready_.end(); it = ready_.find(taken_)) {
      Made next = std::move(it->second);
      ready_.erase(it);
      lock.unlock();
      take_(taken_, std::move(next));
      lock.lock();
      ++taken_;
      moved_.notify_all();
    }
    taking_ = false;
  }

 private:
  const size_t count_;
  const size_t window_;
  const std::function<void(size_t, Made)> take_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<size_t, Made> ready_;
  size_t next_ = 0;
  size_t taken_ = 0;  // changed only by the one who takes
  bool taking_ = false;
};

std::string TooLarge(uint64_t events, uint64_t bytes, uint64_t allowed) {
  return "its " + FormatCount(events) + " events need about " + FormatBytes(bytes) +
         " of memory, allowed are " + FormatBytes(allowed);
}

class GatherLoop {
 public:
  GatherLoop(std::span<Collector* const> collectors, const GatherOptions& options,
             SummaryStore* store)
      : collectors_(collectors), options_(options), store_(store), gate_(options.memory_bytes) {
    for (const Collector* collector : collectors) {
      bytes_an_event_ = std::max(bytes_an_event_, collector->bytes_an_event());
    }
  }

  // `row` is null for a file outside of a corpus.
  Gathered Take(const std::string& path, const TraceRow* row) {
    Gathered gathered;
    gathered.pieces.resize(collectors_.size());
    const bool trusted = row != nullptr && store_ != nullptr && IsAsCataloged(path, *row);
    if (trusted) {
      if (const auto why = Refused(row->events)) {
        gathered.unreadable = *why;
        return gathered;
      }
      FromSummaries(*row, gathered);
    }
    if (gathered.used == collectors_.size()) return gathered;
    Read(path, trusted ? row : nullptr, gathered);
    return gathered;
  }

  void Add(Gathered gathered, const std::string& name) {
    for (size_t i = 0; i < collectors_.size(); ++i) {
      if (gathered.unreadable.empty()) {
        collectors_[i]->Add(std::move(gathered.pieces[i]), name);
      } else {
        collectors_[i]->AddUnreadable(name + ": " + gathered.unreadable);
      }
    }
  }

 private:
  // What changes when a file is written to, replaced or removed.
  struct FileState {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = -1;
    time_t changed_s = 0;
    long changed_ns = 0;

    bool operator==(const FileState&) const = default;
  };
  static FileState StateOf(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return {};
    return {info.st_dev, info.st_ino, info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
  }

  // Corpora never change a file; what others did to it shows at least in its size,
  // mostly. `corpus check` reads every byte.
  static bool IsAsCataloged(const std::string& path, const TraceRow& row) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           static_cast<uint64_t>(info.st_size) == row.bytes;
  }

  std::optional<std::string> Refused(uint64_t events) const {
    const uint64_t bytes = events * bytes_an_event_;
    if (options_.max_trace_bytes == 0 || bytes <= options_.max_trace_bytes) return std::nullopt;
    return TooLarge(events, bytes, options_.max_trace_bytes);
  }

  void FromSummaries(const TraceRow& row, Gathered& gathered) const {
    for (size_t i = 0; i < collectors_.size(); ++i) {
      const auto bytes = store_->Get(row.sha256, collectors_[i]->summary());
      if (!bytes) continue;
      gathered.pieces[i] = collectors_[i]->Decode(*bytes);
      if (gathered.pieces[i]) ++gathered.used;
    }
  }

  void Read(const std::string& path, const TraceRow* row, Gathered& gathered) {
    const FileState before = StateOf(path);
    auto reader = trace::TraceReader::Open(path);
    if (!reader.ok()) {
      gathered.unreadable = reader.error().ToString();
      return;
    }
    const uint64_t events = reader.value().events();
    if (const auto why = Refused(events)) {
      gathered.unreadable = *why;
      return;
    }
    const MemoryTicket ticket(gate_, events * bytes_an_event_);
    const trace::Trace trace = std::move(reader).value().ReadAll(trace::EventOrder::kByThread);
    gathered.read = true;
    if (trace.events.empty() && !trace.diagnostics.empty()) {
      gathered.unreadable = "not one event could be read: the file is cut off or damaged";
      return;
    }
    // Damage that was not there when it was added, or a file that somebody writes to:
    // not what its hash stands for.
    const bool keep = row != nullptr && trace.events.size() == row->events &&
                      (!row->complete || trace.diagnostics.empty()) && before == StateOf(path);
    TraceViews views(trace);
    for (size_t i = 0; i < collectors_.size(); ++i) {
      if (gathered.pieces[i]) continue;
      gathered.pieces[i] = collectors_[i]->Extract(views);
      if (!keep) continue;
      store_->Put(row->sha256, collectors_[i]->summary(),
                  collectors_[i]->Encode(*gathered.pieces[i]));
      ++gathered.made;
    }
  }

  const std::span<Collector* const> collectors_;
  const GatherOptions& options_;
  SummaryStore* const store_;
  MemoryGate gate_;
  uint64_t bytes_an_event_ = 0;
};

}  // namespace

void GatherReport::Add(const GatherReport& other) {
  traces += other.traces;
  traces_read += other.traces_read;
  trace_bytes_read += other.trace_bytes_read;
  summaries_used += other.summaries_used;
  summaries_made += other.summaries_made;
  summary_bytes_read += other.summary_bytes_read;
  summary_bytes_written += other.summary_bytes_written;
  if (why_not_kept.empty()) why_not_kept = other.why_not_kept;
  AddSpilled(other.rows_spilled_bytes, other.why_not_spilled);
}

void GatherReport::AddSpilled(uint64_t bytes, const std::string& why_not) {
  rows_spilled_bytes += bytes;
  if (why_not_spilled.empty()) why_not_spilled = why_not;
}

GatherReport GatherRows(const std::string& corpus_folder, std::span<const TraceRow> rows,
                        std::span<Collector* const> collectors, const GatherOptions& options,
                        Progress& progress) {
  std::optional<SummaryStore> store;
  if (options.use_summaries) store.emplace(corpus_folder);
  GatherLoop loop(collectors, options, store ? &*store : nullptr);
  uint64_t events = 0;
  for (const TraceRow& row : rows) events += row.events;
  const size_t jobs = options.jobs == 0 ? HardwareThreads() : options.jobs;
  GatherReport report;
  progress.Start("reading", "events", events);
  // Enough to keep every thread busy, few enough that waiting pieces stay small.
  InOrder<Gathered> in_order(rows.size(), jobs * 4, [&](size_t i, Gathered gathered) {
    ++report.traces;
    report.traces_read += gathered.read ? 1 : 0;
    report.trace_bytes_read += gathered.read ? rows[i].bytes : 0;
    report.summaries_used += gathered.used;
    report.summaries_made += gathered.made;
    loop.Add(std::move(gathered), rows[i].name);
    LargeMemory::KeepWithinBound();
    progress.Advance(rows[i].events);
  });
  ParallelFor(jobs, jobs, [&](size_t) {
    while (const auto i = in_order.Next()) {
      in_order.Give(*i, loop.Take(TracesFolder(corpus_folder) + "/" + rows[*i].file, &rows[*i]));
    }
  });
  progress.Finish();
  if (store) {
    report.summary_bytes_read = store->bytes_read();
    report.summary_bytes_written = store->bytes_written();
    report.why_not_kept = store->why_not_kept();
  }
  for (const Collector* collector : collectors) collector->Report(report);
  report.AddSpilled(LargeMemory::mapped_bytes(), LargeMemory::why_not_mapped());
  return report;
}

Result<GatherReport> Gather(const std::string& path, std::span<Collector* const> collectors,
                            const GatherOptions& options, Progress& progress) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    CULPRIT_ASSIGN(const Corpus corpus, Corpus::Open(path));
    CULPRIT_ASSIGN(const std::vector<TraceRow> rows, corpus.List());
    return GatherRows(path, rows, collectors, options, progress);
  }
  // Opened once more by the loop; here to give the error as what it is.
  CULPRIT_TRY(trace::TraceReader::Open(path));
  GatherLoop loop(collectors, options, nullptr);
  Gathered gathered = loop.Take(path, nullptr);
  GatherReport report{.traces = 1, .traces_read = gathered.read ? 1U : 0U};
  loop.Add(std::move(gathered), path);
  for (const Collector* collector : collectors) collector->Report(report);
  return report;
}

}  // namespace culprit::corpus
