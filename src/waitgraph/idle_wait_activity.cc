// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/idle_wait_activity.h"

#include <algorithm>
#include <string>

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadKind;

ActivityCounts CountsOf(WaitPurpose purpose, int64_t dur_ns, bool never_idle) {
  ActivityCounts counts;
  counts.waits = 1;
  if (never_idle) {
    counts.work = 1;
    return counts;
  }
  switch (purpose) {
    case WaitPurpose::kCondition:
    case WaitPurpose::kExternal:
    case WaitPurpose::kTimer:
      counts.idle = 1;
      counts.idle_ns = static_cast<uint64_t>(dur_ns);
      break;
    case WaitPurpose::kSync:
      counts.sync = 1;
      counts.idle_ns = static_cast<uint64_t>(dur_ns);
      break;
    case WaitPurpose::kStall:
    case WaitPurpose::kReacquire:
      break;
    case WaitPurpose::kUnknown:
    case WaitPurpose::kWork:
      counts.work = 1;
      break;
  }
  return counts;
}

// Whether a wake-up from this stack is a request that may be waited for. Not if
// it comes from inside a waiting call: receiving frees the sender's buffer,
// waiting for a condition releases its mutex. Nor if it releases a lock anywhere
// else: who takes the next job from a queue lets others take theirs. Not if the program's
// own frames are missing: then it cannot be told where in the program it comes from.
bool IsRequest(const StackClasses& classes, const FunctionPaths& paths, ThreadKind kind,
               trace::StackId stack) {
  if (!stack.valid()) return false;
  if (classes.sends_too[stack.value]) return true;
  if (classes.releases[stack.value]) return false;
  if (kind != ThreadKind::kKernel && paths.KernelOnly(paths.Of(stack))) return false;
  const WaitPurpose purpose = classes.purpose[stack.value];
  return !CanBeIdle(purpose) && purpose != WaitPurpose::kReacquire;
}

Activity InOrder(const std::unordered_map<PathId, ActivityCounts>& counts) {
  Activity activity(counts.begin(), counts.end());
  std::sort(activity.begin(), activity.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return activity;
}

class Gatherer {
 public:
  Gatherer(const Timelines& timelines, const StackClasses& classes, const WaitFacts& facts,
           const std::vector<bool>& never_idle, FunctionPaths& paths)
      : timelines_(timelines),
        events_(timelines.trace().events),
        kinds_(timelines.trace().dictionary.threads()),
        classes_(classes),
        facts_(facts),
        never_idle_(never_idle),
        paths_(paths),
        threads_(timelines.trace().dictionary.threads().size()),
        counts_(threads_.size()) {}

  std::vector<ThreadActivity> Gather() {
    for (EventIndex i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.kind != EventKind::kWait || !event.thread.valid()) continue;
      ++Of(event).by_evidence[static_cast<size_t>(facts_.by_event[i].evidence)];
      if (event.stack.valid() && !paths_.Truncated(paths_.Of(event.stack))) {
        ++Of(event).whole_stacks;
      }
    }
    ObserveAll();
    for (size_t i = 0; i < threads_.size(); ++i) {
      for (auto& [path, counts] : counts_[i]) {
        counts.recurring = counts.waits > 1 ? counts.waits : 0;
      }
      threads_[i].activity = InOrder(counts_[i]);
    }
    return std::move(threads_);
  }

 private:
  ThreadActivity& Of(const Event& event) { return threads_[event.thread.value]; }

  // Waits without a stack in order of time, since their paths are numbered as they
  // are invented; of the others the order does not matter.
  void ObserveAll() {
    std::vector<EventIndex> bare;
    for (EventIndex i = 0; i < events_.size(); ++i) {
      if (!events_[i].thread.valid()) continue;
      if (events_[i].kind == EventKind::kWait && !events_[i].stack.valid()) {
        bare.push_back(i);
      } else {
        Observe(i);
      }
    }
    const auto before = [&](EventIndex a, EventIndex b) { return timelines_.IsBefore(a, b); };
    if (!std::is_sorted(bare.begin(), bare.end(), before)) {
      std::sort(bare.begin(), bare.end(), before);
    }
    for (const EventIndex i : bare) Observe(i);
  }

  void Observe(EventIndex i) {
    const Event& event = events_[i];
    auto& counts = counts_[event.thread.value];
    const bool whole = event.stack.valid() && !paths_.Truncated(paths_.Of(event.stack));
    if (!whole && Of(event).whole_stacks != 0) return;
    if (event.kind == EventKind::kWait) {
      const WaitFact& fact = facts_.by_event[i];
      const bool has_stacks = Of(event).by_evidence[static_cast<size_t>(WaitEvidence::kStack)] != 0;
      if (has_stacks && fact.evidence != WaitEvidence::kStack) return;
      const bool never =
          !never_idle_.empty() && event.stack.valid() && never_idle_[event.stack.value];
      counts[PathOfWait(event, fact, facts_, paths_)].Add(
          CountsOf(fact.purpose, event.dur_ns, never));
    } else if (event.kind == EventKind::kUnwait &&
               IsRequest(classes_, paths_, kinds_[event.thread.value].kind, event.stack)) {
      ++counts[paths_.Of(event.stack)].wakes;
    } else if (event.kind == EventKind::kRunning && event.stack.valid()) {
      ++counts[paths_.Of(event.stack)].runs;
    }
  }

  const Timelines& timelines_;
  const std::vector<Event>& events_;
  const std::vector<trace::Thread>& kinds_;
  const StackClasses& classes_;
  const WaitFacts& facts_;
  const std::vector<bool>& never_idle_;
  FunctionPaths& paths_;
  std::vector<ThreadActivity> threads_;
  std::vector<std::unordered_map<PathId, ActivityCounts>> counts_;  // by thread
};

}  // namespace

void ActivityCounts::Add(const ActivityCounts& other) {
  waits += other.waits;
  recurring += other.recurring;
  idle += other.idle;
  sync += other.sync;
  work += other.work;
  wakes += other.wakes;
  runs += other.runs;
  idle_ns += other.idle_ns;
}

bool CanBeIdle(WaitPurpose purpose) {
  return purpose == WaitPurpose::kCondition || purpose == WaitPurpose::kExternal ||
         purpose == WaitPurpose::kTimer;
}

PathId PathOfWait(const Event& wait, const WaitFact& fact, const WaitFacts& facts,
                  FunctionPaths& paths) {
  if (wait.stack.valid()) return paths.Of(wait.stack);
  if (fact.evidence == WaitEvidence::kSyscall) {
    return paths.Invented("[" + std::string(facts.syscalls[fact.syscall]) + "]");
  }
  if (fact.evidence == WaitEvidence::kNone) return kRootPath;
  if (fact.purpose == WaitPurpose::kSync) return paths.Invented("[woken by its own process]");
  if (fact.wait_class == WaitClass::kIpc) return paths.Invented("[woken by another process]");
  return paths.Invented("[woken by " + std::string(Name(fact.wait_class)) + "]");
}

std::vector<ThreadActivity> GatherActivity(const Timelines& timelines, const StackClasses& classes,
                                           const WaitFacts& facts,
                                           const std::vector<bool>& never_idle,
                                           FunctionPaths& paths) {
  return Gatherer(timelines, classes, facts, never_idle, paths).Gather();
}

Activity Join(const std::vector<const Activity*>& parts) {
  std::unordered_map<PathId, ActivityCounts> sums;
  for (const Activity* part : parts) {
    for (const auto& [path, counts] : *part) sums[path].Add(counts);
  }
  return InOrder(sums);
}

ActivityTree::ActivityTree(const FunctionPaths& paths, const Activity& activity) {
  nodes_[kRootPath];
  for (const auto& [own_path, counts] : activity) {
    PathId below = kRootPath;  // none yet
    for (PathId path = own_path;; path = paths.caller(path)) {
      const auto [it, added] = nodes_.try_emplace(path);
      it->second.counts.Add(counts);
      if (below != kRootPath) it->second.below.push_back(below);
      below = added ? path : kRootPath;
      if (path == kRootPath) break;
    }
  }
  for (auto& [path, node] : nodes_) std::sort(node.below.begin(), node.below.end());
}

const ActivityCounts& ActivityTree::at(PathId path) const {
  static const ActivityCounts kNothing;
  const auto it = nodes_.find(path);
  return it == nodes_.end() ? kNothing : it->second.counts;
}

const std::vector<PathId>& ActivityTree::below(PathId path) const {
  static const std::vector<PathId> kNone;
  const auto it = nodes_.find(path);
  return it == nodes_.end() ? kNone : it->second.below;
}

}  // namespace culprit::waitgraph
