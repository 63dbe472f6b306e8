// SPDX-License-Identifier: Apache-2.0
//
// Activity: what threads do, by path (idle_wait_paths.h): how often they wait and
// for what, how often they wake others, how often they were sampled running.
// This is all that the rules about idleness look at. ActivityTree is the same
// summed over callees, so that a branch of a loop is one lookup.
//
// Passive data, in order of path. A tree costs O(paths × depth) once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "waitgraph/idle_wait_paths.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

struct ActivityCounts {
  uint64_t waits = 0;
  uint64_t recurring = 0;  // those of `waits` whose path the thread waits at again
  uint64_t idle = 0;       // for something external, a timer, a condition
  uint64_t sync = 0;       // for a futex that may be a lock or a condition
  uint64_t work = 0;       // for anything that is part of work
  uint64_t wakes = 0;      // of others, not from inside the waiting call itself
  uint64_t runs = 0;       // running events with a stack
  uint64_t idle_ns = 0;    // duration of `idle` and `sync`

  void Add(const ActivityCounts& other);
};

using Activity = std::vector<std::pair<PathId, ActivityCounts>>;  // by path, each once

// By thread. `facts` and `never_idle` (by stack; may be empty) say what the waits
// are for. Waits without a stack, and all that has only a truncated one, count
// only for threads that wait with no others.
struct ThreadActivity {
  Activity activity;
  uint64_t by_evidence[4] = {};  // waits, by WaitEvidence
  uint64_t whole_stacks = 0;     // those with a stack that is not truncated
};
std::vector<ThreadActivity> GatherActivity(const Timelines& timelines, const StackClasses& classes,
                                           const WaitFacts& facts,
                                           const std::vector<bool>& never_idle,
                                           FunctionPaths& paths);
// The path a wait counts at; the root if nothing is known about it.
PathId PathOfWait(const trace::Event& wait, const WaitFact& fact, const WaitFacts& facts,
                  FunctionPaths& paths);
bool CanBeIdle(WaitPurpose purpose);

// The sum of several; counts of equal paths are added.
Activity Join(const std::vector<const Activity*>& parts);

class ActivityTree {
 public:
  ActivityTree(const FunctionPaths& paths, const Activity& activity);

  // The path and everything below it; nothing for a path that is not there.
  const ActivityCounts& at(PathId path) const;
  const ActivityCounts& total() const { return at(kRootPath); }
  // Callees with any activity, in order of path.
  const std::vector<PathId>& below(PathId path) const;

 private:
  struct Node {
    ActivityCounts counts;
    std::vector<PathId> below;
  };
  std::unordered_map<PathId, Node> nodes_;
};

}  // namespace culprit::waitgraph
