// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/parallel.h"
#include "corpus/corpus.h"
#include "corpus/staging.h"
#include "corpus/state.h"
#include "corpus/summary_store.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;
using Problem = CheckReport::Problem;
using Stray = CheckReport::Stray;

// A staged file of another system cannot be asked about its writer; after a
// day without a write nobody is writing it.
constexpr time_t kAbandonedSeconds = 86'400;

std::string Plain(const Error& error) {
  return Error{.message = error.message, .offset = error.offset}.ToString();
}

struct TraceVerdict {
  uint64_t events = 0;
  std::vector<std::string> problems;
};

// Only for whole traces: a damaged one has holes, and said so when it was added.
void CheckTime(const std::string& path, TraceVerdict& verdict) {
  const auto trace = trace::ReadTrace(path);
  if (!trace.ok()) {
    verdict.problems.push_back(Plain(trace.error()));
    return;
  }
  const trace::ConservationReport report = trace::CheckConservation(trace.value());
  if (!report.ok())
    verdict.problems.push_back("time is not fully accounted for: " + report.first_problem);
}

TraceVerdict CheckTrace(const std::string& path, const TraceRow& row,
                        const std::vector<InstanceRow>& instances) {
  TraceVerdict verdict;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    verdict.problems.push_back(Plain(ErrnoError("find the file", path)));
    return verdict;
  }
  if (static_cast<uint64_t>(info.st_size) != row.bytes) {
    verdict.problems.push_back("the file has " + std::to_string(info.st_size) + " bytes, not " +
                               std::to_string(row.bytes));
    return verdict;
  }
  const auto entry = MakeCatalogEntry(path, BlockCheck::kDecode);
  if (!entry.ok()) {
    verdict.problems.push_back(Plain(entry.error()));
    return verdict;
  }
  verdict.events = entry.value().row.events;
  if (entry.value().row.sha256 != row.sha256) {
    verdict.problems.push_back("the content has changed since it was added");
    return verdict;
  }
  verdict.problems = Differences(row, entry.value().row);
  if (row.file != ContentFile(row.sha256))
    verdict.problems.push_back("the content had changed before the catalog was rebuilt");
  const std::vector<std::string> differences = Differences(instances, entry.value().instances);
  verdict.problems.insert(verdict.problems.end(), differences.begin(), differences.end());
  if (row.complete) CheckTime(path, verdict);
  return verdict;
}

// Strays are looked for under the write lock: between placing a file and
// committing its row, a writer holds it. In a read-only corpus nobody writes.
class StrayHunt {
 public:
  StrayHunt(CorpusState& state, bool repair) : state_(state), repair_(repair) {}

  Result<std::vector<Stray>> Run() {
    CULPRIT_ASSIGN(const std::vector<std::string> content, StrayContent());
    CULPRIT_TRY(Content(content));
    CULPRIT_TRY(Staging());
    return std::move(strays_);
  }

 private:
  Result<std::vector<std::string>> StrayContent() {
    const std::lock_guard lock(state_.mutex);
    const bool locked = state_.catalog.Begin().ok();
    auto strays = [&]() -> Result<std::vector<std::string>> {
      CULPRIT_ASSIGN(std::vector<std::string> files, ContentFiles(state_.folder));
      CULPRIT_ASSIGN(const std::vector<TraceRow> rows, state_.catalog.List({}));
      CULPRIT_ASSIGN(const std::vector<std::string> condemned, state_.catalog.Condemned());
      std::set<std::string> known;
      for (const TraceRow& row : rows) known.insert(row.file);
      std::erase_if(files, [&](const std::string& file) { return known.count(file) != 0; });
      condemned_.insert(condemned.begin(), condemned.end());
      return files;
    }();
    if (locked) state_.catalog.Rollback();
    return strays;
  }

  Status Content(const std::vector<std::string>& files) {
    if (repair_ && !condemned_.empty()) {
      const std::lock_guard lock(state_.mutex);
      CULPRIT_TRY(ExecuteCondemned(state_));
    }
    for (const std::string& file : files) {
      std::string what;
      if (condemned_.count(file) != 0) {
        what = repair_ ? "was left by an interrupted 'corpus rm'; removed"
                       : "was left by an interrupted 'corpus rm'";
      } else if (repair_) {
        CULPRIT_ASSIGN(what, TakeIn(file));
      } else {
        what = "is not in the catalog";
      }
      strays_.push_back({"traces/" + file, std::move(what)});
    }
    return {};
  }

  // A file that cannot be read stays: it may be of a later version.
  Result<std::string> TakeIn(const std::string& file) {
    const std::string path = TracesFolder(state_.folder) + "/" + file;
    auto entry = MakeCatalogEntry(path, BlockCheck::kDecode);
    if (!entry.ok()) return "was not in the catalog and is left alone: " + Plain(entry.error());
    std::vector<Candidate> one(1);
    one[0] = {path, "recovered-" + file.substr(0, 12), {}, std::move(entry).value()};
    CULPRIT_ASSIGN(const std::vector<AddOutcome> outcomes, AddCandidates(state_, one));
    return "was not in the catalog; added as '" + outcomes[0].name + "'";
  }

  Status Staging() {
    std::error_code code;
    std::vector<std::string> names;
    for (fs::directory_iterator it(StagingFolder(state_.folder), code), end; !code && it != end;
         it.increment(code)) {
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string path = StagingFolder(state_.folder) + "/" + name;
      if (!IsAbandoned(name, path)) continue;
      std::string what = "was left by a process that is gone";
      if (repair_) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError("remove", path);
        what += "; removed";
      }
      strays_.push_back({"traces/.staging/" + name, std::move(what)});
    }
    return {};
  }

  static bool IsAbandoned(const std::string& name, const std::string& path) {
    const StagingWriter writer = WriterOf(name);
    if (writer != StagingWriter::kElsewhere) return writer == StagingWriter::kDead;
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 &&
           std::time(nullptr) - info.st_mtime > kAbandonedSeconds;
  }

  CorpusState& state_;
  const bool repair_;
  std::set<std::string> condemned_;
  std::vector<Stray> strays_;
};

// Summaries are only ever made again, so one that is not right is a stray.
Status CheckSummaries(const std::string& folder, const std::vector<TraceRow>& rows,
                      const CheckOptions& options, CheckReport& report) {
  std::map<std::string, std::string_view> hashes;
  for (const TraceRow& row : rows)
    hashes.emplace(row.file.substr(0, row.file.find('.')), row.sha256);
  const std::vector<SummaryFile> files = ListSummaries(folder);
  std::vector<char> right(files.size());
  ParallelFor(files.size(), options.jobs, [&](size_t i) {
    const auto of = hashes.find(files[i].trace);
    right[i] = of != hashes.end() && IsWholeSummary(folder, files[i], of->second) ? 1 : 0;
  });
  for (size_t i = 0; i < files.size(); ++i) {
    ++report.summaries;
    report.summary_bytes += files[i].bytes;
    if (right[i] != 0) continue;
    if (files[i].temporary && std::time(nullptr) - files[i].used_s <= kAbandonedSeconds) continue;
    const bool of_nobody = hashes.find(files[i].trace) == hashes.end();
    std::string what = of_nobody ? "is a summary of no trace here" : "is a damaged summary";
    if (options.repair) {
      const std::string path = folder + "/" + files[i].path;
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError("remove", path);
      what += "; removed";
    }
    report.strays.push_back({files[i].path, std::move(what)});
  }
  return {};
}

}  // namespace

Result<CheckReport> Corpus::Check(const CheckOptions& options, Progress& progress) {
  CheckReport report;
  StrayHunt hunt(*state_, options.repair);
  CULPRIT_ASSIGN(report.strays, hunt.Run());
  CULPRIT_ASSIGN(const std::vector<TraceRow> rows, List());
  CULPRIT_TRY(CheckSummaries(state_->folder, rows, options, report));
  std::vector<TraceVerdict> verdicts(rows.size());
  progress.Start("checking", "traces", rows.size());
  ParallelFor(rows.size(), options.jobs, [&](size_t i) {
    const auto instances = InstancesOf(rows[i]);
    if (instances.ok()) {
      verdicts[i] = CheckTrace(TracePath(rows[i]), rows[i], instances.value());
    } else {
      verdicts[i].problems.push_back(Plain(instances.error()));
    }
    progress.Advance();
  });
  progress.Finish();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!verdicts[i].problems.empty()) {
      // Removed by another process while this one was reading.
      const std::lock_guard lock(state_->mutex);
      CULPRIT_ASSIGN(const auto still, state_->catalog.FindBySha256(rows[i].sha256));
      if (!still || still->id != rows[i].id) continue;
    }
    ++report.traces;
    report.events += verdicts[i].events;
    report.bytes += rows[i].bytes;
    if (!rows[i].complete) ++report.damaged_when_added;
    for (std::string& what : verdicts[i].problems)
      report.problems.push_back({rows[i].name, "traces/" + rows[i].file, std::move(what)});
  }
  return report;
}

Result<CheckReport> CheckCorpus(const std::string& folder, const CheckOptions& options,
                                Progress& progress) {
  const std::string path = CatalogPath(folder);
  CULPRIT_ASSIGN(const CatalogState state, ProbeCatalog(path, true));
  bool lost = state == CatalogState::kBroken;
  if (state == CatalogState::kMissing || state == CatalogState::kEmpty) {
    CULPRIT_ASSIGN(const std::vector<std::string> content, ContentFiles(folder));
    lost = !content.empty();
  }
  if (state == CatalogState::kBroken && !options.repair) {
    return Error{.message = "is not a catalog of traces, or damaged",
                 .file = path,
                 .hint = "'culprit corpus check " + folder +
                         " --repair' makes a new one from the trace files and keeps this one"};
  }
  const bool rebuild = lost && options.repair;
  std::string old_catalog;
  if (rebuild) {
    CULPRIT_ASSIGN(old_catalog, RebuildCatalog(folder, options, progress));
  }
  CULPRIT_ASSIGN(Corpus corpus, Corpus::Open(folder));
  CULPRIT_ASSIGN(CheckReport report, corpus.Check(options, progress));
  report.catalog_rebuilt = rebuild;
  report.old_catalog = old_catalog;
  return report;
}

}  // namespace culprit::corpus
