// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/idle_wait.h"

#include <algorithm>
#include <map>

namespace culprit::waitgraph {
namespace {

constexpr uint64_t kCommonWaitsPercent = 98;
constexpr uint64_t kCommonWaitsLaxPercent = 90;
constexpr uint64_t kCommonWakesPercent = 90;
// Unwinding by frame pointers loses the leaf's caller in up to a quarter of the
// samples, which then seem to leave a frame earlier.
constexpr uint64_t kCommonRunsPercent = 70;
constexpr uint64_t kMaxWakesPercent = 5;
constexpr uint64_t kAllButIdlePercent = 10;
// Of all waits, for an idle branch found above the loop: less is an accident.
constexpr uint64_t kMinShareAbovePercent = 1;

bool AtLeast(uint64_t part, uint64_t whole, uint64_t percent) {
  return part * 100 >= whole * percent;
}

// Threads with few waits have none that recur; all of them count then.
uint64_t Weight(const ActivityTree& tree, const ActivityCounts& counts) {
  return tree.total().recurring != 0 ? counts.recurring : counts.waits;
}

template <class Holds>
PathId Descend(const ActivityTree& tree, PathId from, Holds holds) {
  for (PathId path = from;;) {
    const std::vector<PathId>& below = tree.below(path);
    const auto next =
        std::find_if(below.begin(), below.end(), [&](PathId p) { return holds(tree.at(p)); });
    if (next == below.end()) return path;
    path = *next;
  }
}

// The path where the commonest waits below `path` end.
PathId HeaviestWait(const ActivityTree& tree, PathId path) {
  for (;;) {
    PathId heaviest = kRootPath;
    uint64_t waits = 0;
    uint64_t all = 0;
    for (const PathId below : tree.below(path)) {
      all += tree.at(below).waits;
      if (tree.at(below).waits <= waits) continue;
      heaviest = below;
      waits = tree.at(below).waits;
    }
    if (waits == 0 || tree.at(path).waits - all > waits) return path;
    path = heaviest;
  }
}

// The caller of the waiting call that `leaf` is in. In system code above the leaf
// that is the kernel, the library function that entered it, and whatever is known
// to wait or has no name. Stacks of the kernel alone are system code throughout;
// there only known ways to wait are the waiting call.
PathId CallerOfWait(const FunctionPaths& paths, PathId leaf) {
  const bool kernel_only = paths.KernelOnly(leaf);
  PathId outermost = leaf;
  bool entered = false;
  for (PathId path = leaf; path != kRootPath; path = paths.caller(path)) {
    const FunctionPaths::Function& function = paths.at(paths.function(path));
    if (!function.waiting && (kernel_only || !function.system)) break;
    const bool enters = !function.kernel && !entered;
    entered = entered || enters;
    if (function.waiting || function.kernel || enters || !function.named) outermost = path;
  }
  return paths.caller(outermost);
}

PathId Shallower(const FunctionPaths& paths, PathId a, PathId b) {
  return paths.depth(a) <= paths.depth(b) ? a : b;
}

// Whether waits go more than one way from here.
bool WaitsPart(const ActivityTree& tree, PathId path) {
  uint64_t ways = 0;
  uint64_t below_waits = 0;
  for (const PathId below : tree.below(path)) {
    const uint64_t weight = Weight(tree, tree.at(below));
    ways += weight != 0 ? 1 : 0;
    below_waits += weight;
  }
  if (Weight(tree, tree.at(path)) > below_waits) ++ways;
  return ways > 1;
}

struct Choice {
  FunctionId function = kNoFunction;
  uint64_t waits = 0;
  uint64_t idle_ns = 0;
  bool by_sync = false;
  bool invented = false;

  // Where wakers are all there is, a wait that its own process ended is as good a
  // guess as any.
  bool BetterThan(const Choice& other) const {
    if (other.function == kNoFunction) return true;
    if (by_sync != other.by_sync && !(invented && other.invented)) return other.by_sync;
    return waits != other.waits ? waits > other.waits : idle_ns > other.idle_ns;
  }
};

// Rules 2 to 4 at one level: branches of all loop paths by function, since the
// same loop can be reached along several ways.
Choice ChooseBranch(const FunctionPaths& paths, const ActivityTree& tree,
                    const std::vector<PathId>& loops) {
  std::map<FunctionId, ActivityCounts> branches;
  for (const PathId loop : loops) {
    for (const PathId below : tree.below(loop)) {
      branches[paths.function(below)].Add(tree.at(below));
    }
  }
  Choice best;
  for (const auto& [function, counts] : branches) {
    const BranchVerdict verdict = JudgeBranch(counts);
    if (verdict < BranchVerdict::kMaybeIdle) continue;
    const Choice choice{function, counts.idle + counts.sync, counts.idle_ns,
                        verdict == BranchVerdict::kMaybeIdle, !paths.at(function).frame.valid()};
    if (choice.BetterThan(best)) best = choice;
  }
  return best;
}

// Where a branch is all but idle, the loop lies inside it: what it waits for there
// and what little else it does part further down.
PathId Inside(const ActivityTree& tree, PathId loop) {
  for (;;) {
    PathId most = kRootPath;
    uint64_t waits = 0;
    for (const PathId below : tree.below(loop)) {
      const uint64_t here = tree.at(below).idle + tree.at(below).sync;
      if (here > waits) most = below;
      waits = std::max(waits, here);
    }
    if (most == kRootPath) return kRootPath;
    const ActivityCounts& counts = tree.at(most);
    if (JudgeBranch(counts) >= BranchVerdict::kMaybeIdle) return loop;
    if ((counts.work + counts.wakes) * 100 > counts.waits * kAllButIdlePercent) return kRootPath;
    loop = most;
  }
}

std::vector<PathId> Inside(const ActivityTree& tree, const std::vector<PathId>& loops) {
  std::vector<PathId> inside;
  for (const PathId loop : loops) {
    const PathId found = Inside(tree, loop);
    if (found != kRootPath) inside.push_back(found);
  }
  std::sort(inside.begin(), inside.end());
  inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
  return inside;
}

// The nearest callers with waits that do not come through the loops.
std::vector<PathId> Above(const FunctionPaths& paths, const ActivityTree& tree,
                          const std::vector<PathId>& loops) {
  std::vector<PathId> above;
  for (PathId loop : loops) {
    const uint64_t waits = tree.at(loop).waits;
    while (loop != kRootPath && tree.at(loop).waits == waits) loop = paths.caller(loop);
    above.push_back(loop);
  }
  std::sort(above.begin(), above.end());
  above.erase(std::unique(above.begin(), above.end()), above.end());
  return above;
}

// Whether a branch is the kernel's way into a wait, or an invented one: what the
// program was doing is not known, so its loop is not either.
bool IsBlind(const FunctionPaths& paths, PathId branch, bool kernel_thread) {
  return !paths.at(paths.function(branch)).frame.valid() ||
         (!kernel_thread && paths.KernelOnly(branch));
}

bool IsIdleEnough(const ActivityCounts& counts, bool by_sync) {
  const BranchVerdict verdict = JudgeBranch(counts);
  return verdict == BranchVerdict::kIdle || (verdict == BranchVerdict::kMaybeIdle && by_sync);
}

void SortBranches(const FunctionPaths& paths, const ActivityTree& tree, bool kernel_thread,
                  LoopVerdict& verdict) {
  for (const PathId loop : verdict.loops) {
    for (const PathId below : tree.below(loop)) {
      const ActivityCounts& counts = tree.at(below);
      if (paths.function(below) == verdict.idle ||
          (IsBlind(paths, below, kernel_thread) && IsIdleEnough(counts, verdict.by_sync))) {
        verdict.idle_paths.push_back(below);
      } else if (JudgeBranch(counts) == BranchVerdict::kWork) {
        verdict.work_paths.push_back(below);
      }
    }
  }
}

// Rule 5.
void AddIdleAbove(const FunctionPaths& paths, const ActivityTree& tree, LoopVerdict& verdict) {
  for (const PathId loop : verdict.loops) {
    for (PathId path = loop; path != kRootPath; path = paths.caller(path)) {
      for (const PathId below : tree.below(paths.caller(path))) {
        if (below != path && IsIdleEnough(tree.at(below), verdict.by_sync)) {
          verdict.idle_paths.push_back(below);
        }
      }
    }
  }
}

}  // namespace

Loop FindLoop(const FunctionPaths& paths, const ActivityTree& tree, LoopSearch search) {
  const ActivityCounts& total = tree.total();
  if (total.waits == 0) return {};
  const uint64_t percent =
      search == LoopSearch::kStrict ? kCommonWaitsPercent : kCommonWaitsLaxPercent;
  const auto holds_waits = [&](const ActivityCounts& counts) {
    return AtLeast(Weight(tree, counts), Weight(tree, total), percent);
  };
  const auto holds_all = [&](const ActivityCounts& counts) {
    return holds_waits(counts) && AtLeast(counts.wakes, total.wakes, kCommonWakesPercent) &&
           AtLeast(counts.runs, total.runs, kCommonRunsPercent);
  };
  const PathId common = Descend(tree, kRootPath, holds_waits);
  const PathId limit = CallerOfWait(paths, HeaviestWait(tree, common));
  const PathId loop = Shallower(paths, common, limit);
  if (WaitsPart(tree, loop)) return {loop, true};
  const PathId all = Descend(tree, kRootPath, holds_all);
  return {Shallower(paths, all, loop), paths.depth(all) <= paths.depth(loop)};
}

BranchVerdict JudgeBranch(const ActivityCounts& counts) {
  if (counts.idle + counts.sync == 0) {
    return counts.work + counts.wakes != 0 ? BranchVerdict::kWork : BranchVerdict::kNoWaits;
  }
  if (counts.work != 0) return BranchVerdict::kWork;
  if (counts.wakes * 100 > counts.waits * kMaxWakesPercent) return BranchVerdict::kWork;
  return counts.sync != 0 ? BranchVerdict::kMaybeIdle : BranchVerdict::kIdle;
}

LoopVerdict JudgeLoop(const FunctionPaths& paths, const ActivityTree& tree,
                      std::vector<PathId> loops, bool kernel_thread) {
  LoopVerdict verdict;
  verdict.loops = loops;
  Choice choice = ChooseBranch(paths, tree, loops);
  if (choice.function == kNoFunction) {
    const std::vector<PathId> inside = Inside(tree, loops);
    choice = ChooseBranch(paths, tree, inside);
    if (choice.function != kNoFunction) loops = inside;
  }
  const uint64_t least = std::max<uint64_t>(2, tree.total().waits * kMinShareAbovePercent / 100);
  while (choice.function == kNoFunction) {
    if (loops.size() == 1 && loops.front() == kRootPath) return verdict;
    loops = Above(paths, tree, loops);
    choice = ChooseBranch(paths, tree, loops);
    if (choice.waits < least) choice = {};
  }
  verdict.loops = std::move(loops);
  verdict.idle = choice.function;
  verdict.by_sync = choice.by_sync;
  SortBranches(paths, tree, kernel_thread, verdict);
  AddIdleAbove(paths, tree, verdict);
  std::sort(verdict.idle_paths.begin(), verdict.idle_paths.end());
  verdict.idle_paths.erase(std::unique(verdict.idle_paths.begin(), verdict.idle_paths.end()),
                           verdict.idle_paths.end());
  return verdict;
}

}  // namespace culprit::waitgraph
