// SPDX-License-Identifier: Apache-2.0
#include "export/thread_walk.h"

#include <algorithm>

#include "trace/owner_state.h"

namespace culprit::export_ {
namespace {

using trace::BlockInfo;
using trace::Event;
using trace::ThreadId;

class ThreadWalk {
 public:
  ThreadWalk(const trace::TraceReader& reader, Progress* progress)
      : reader_(reader),
        progress_(progress),
        threads_(reader.dictionary().threads().size()),
        told_(reader.blocks().size(), false) {
    counts_.resize(threads_ + 1);  // the last slot is for none()
    for (const BlockInfo& block : reader.blocks()) {
      for (const BlockInfo::Owner& owner : block.owners)
        counts_[Slot(owner.thread)] += owner.events;
    }
    summary_.diagnostics.Merge(reader.diagnostics());
  }

  Status Run(const ThreadVisit& visit, uint64_t round_events) {
    for (size_t first = 0; first <= threads_;) {
      size_t end = first + 1;
      uint64_t events = counts_[first];
      while (end <= threads_ && events + counts_[end] <= round_events) events += counts_[end++];
      Collect(first, end);
      for (size_t slot = first; slot < end; ++slot) {
        std::vector<Event>& mine = taken_[slot - first];
        if (slot == threads_ && mine.empty()) continue;
        trace::SortByTime(mine);
        CULPRIT_TRY(visit(slot == threads_ ? ThreadId::none() : ThreadId(slot), mine));
        summary_.events += mine.size();
        if (progress_ != nullptr) progress_->Advance(counts_[slot]);
        std::vector<Event>().swap(mine);
      }
      first = end;
    }
    return {};
  }

  Summary summary() { return std::move(summary_); }

 private:
  size_t Slot(ThreadId thread) const { return std::min<size_t>(thread.value, threads_); }

  // The events of the threads [first, end) into taken_.
  void Collect(size_t first, size_t end) {
    taken_.assign(end - first, {});
    std::vector<Event> events;
    for (size_t i = 0; i < reader_.blocks().size(); ++i) {
      const auto wanted = [&](const BlockInfo::Owner& owner) {
        return Slot(owner.thread) >= first && Slot(owner.thread) < end;
      };
      if (std::none_of(reader_.blocks()[i].owners.begin(), reader_.blocks()[i].owners.end(),
                       wanted)) {
        continue;
      }
      const Status status = reader_.ReadBlock(i, events);
      if (!status.ok()) {
        Tell(i, status.error());
        continue;
      }
      for (const Event& event : events) {
        const size_t slot = Slot(OwnerOf(event));
        if (slot >= first && slot < end) taken_[slot - first].push_back(event);
      }
    }
  }

  void Tell(size_t block, const Error& error) {
    if (told_[block]) return;
    told_[block] = true;
    summary_.diagnostics.Count(error.message, 1, error.offset);
    summary_.diagnostics.Count("events lost with a damaged block", reader_.blocks()[block].events);
  }

  const trace::TraceReader& reader_;
  Progress* progress_;
  const size_t threads_;
  std::vector<bool> told_;
  std::vector<uint64_t> counts_;
  std::vector<std::vector<Event>> taken_;
  Summary summary_;
};

}  // namespace

Result<Summary> WalkThreads(const trace::TraceReader& reader, Progress* progress,
                            const ThreadVisit& visit, uint64_t round_events) {
  if (progress != nullptr) progress->Start("exporting", "events", reader.events());
  ThreadWalk walk(reader, progress);
  CULPRIT_TRY(walk.Run(visit, round_events));
  if (progress != nullptr) progress->Finish();
  return walk.summary();
}

}  // namespace culprit::export_
