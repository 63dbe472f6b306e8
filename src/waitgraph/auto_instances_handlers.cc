// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/auto_instances_handlers.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace culprit::waitgraph {
namespace {

constexpr uint64_t kSharedPercent = 95;
constexpr uint64_t kPurePercent = 95;
constexpr uint64_t kMinTested = 20;
constexpr uint64_t kMinOfKind = 5;
constexpr size_t kMaxLevels = 16;

// What was seen of each instance: paths of its waits and samples.
struct Seen {
  std::vector<PathId> paths;
  std::vector<uint32_t> ends;  // by instance, in `paths`
};

bool GoesThrough(const FunctionPaths& paths, PathId path, const std::vector<PathId>& sorted) {
  for (; path != kRootPath; path = paths.caller(path)) {
    if (std::binary_search(sorted.begin(), sorted.end(), path)) return true;
  }
  return false;
}

// What the thread does in the idle branch, going to sleep and waking up, is the
// same for every instance.
Seen Look(const Timelines& timelines, const FunctionPaths& paths, const LoopVerdict& loop,
          const std::vector<bool>& idle_wait, const std::vector<trace::Instance>& instances) {
  Seen seen;
  std::unordered_map<PathId, bool> in_idle_branch;
  for (const trace::Instance& instance : instances) {
    const std::span<const EventIndex> tiles = timelines.tiles(instance.thread);
    const Timelines::Range range =
        timelines.TilesIn(instance.thread, instance.t0_ns, instance.t1_ns);
    for (size_t i = range.begin; i < range.end; ++i) {
      const trace::Event& tile = timelines.event(tiles[i]);
      const bool tells = tile.kind == trace::EventKind::kRunning ||
                         (tile.kind == trace::EventKind::kWait && !idle_wait[tiles[i]]);
      if (!tells || !tile.stack.valid()) continue;
      const PathId path = paths.Of(tile.stack);
      const auto [it, added] = in_idle_branch.try_emplace(path, false);
      if (added) it->second = GoesThrough(paths, path, loop.idle_paths);
      if (!it->second) seen.paths.push_back(path);
    }
    seen.ends.push_back(static_cast<uint32_t>(seen.paths.size()));
  }
  return seen;
}

// Branches of one level: the path right below one of `loops` on the way to each
// path; the root if it does not go through any.
class Branches {
 public:
  Branches(const FunctionPaths& paths, std::vector<PathId> loops)
      : paths_(paths), loops_(std::move(loops)) {}

  PathId Of(PathId path) {
    const auto [it, added] = known_.try_emplace(path, kRootPath);
    if (!added) return it->second;
    PathId below = path;
    while (below != kRootPath && !IsLoop(paths_.caller(below))) below = paths_.caller(below);
    return known_[path] = below;
  }

 private:
  bool IsLoop(PathId path) const {
    return std::find(loops_.begin(), loops_.end(), path) != loops_.end();
  }

  const FunctionPaths& paths_;
  std::vector<PathId> loops_;
  std::unordered_map<PathId, PathId> known_;
};

struct Level {
  std::map<FunctionId, uint64_t> counts;  // of what was seen, by branch
  std::vector<PathId> heaviest;           // paths of the commonest branch
  uint64_t total = 0;
  uint64_t most = 0;
};

Level CountLevel(const FunctionPaths& paths, const Seen& seen, Branches& branches) {
  Level level;
  std::map<FunctionId, std::vector<PathId>> branch_paths;
  for (const PathId path : seen.paths) {
    const PathId branch = branches.Of(path);
    if (branch == kRootPath) continue;
    const FunctionId function = paths.function(branch);
    ++level.total;
    ++level.counts[function];
    std::vector<PathId>& list = branch_paths[function];
    if (std::find(list.begin(), list.end(), branch) == list.end()) list.push_back(branch);
  }
  for (const auto& [function, count] : level.counts) {
    if (count <= level.most) continue;
    level.most = count;
    level.heaviest = branch_paths[function];
  }
  return level;
}

// The one branch all that was seen of each instance went through.
struct Kinds {
  std::vector<FunctionId> of_instance;
  std::map<FunctionId, uint64_t> counts;
  uint64_t tested = 0;
  uint64_t pure = 0;
};

Kinds SortInstances(const FunctionPaths& paths, const Seen& seen, Branches& branches) {
  Kinds kinds;
  uint32_t begin = 0;
  for (const uint32_t end : seen.ends) {
    FunctionId kind = kNoFunction;
    bool mixed = false;
    uint64_t things = 0;
    for (uint32_t i = begin; i < end; ++i) {
      const PathId branch = branches.Of(seen.paths[i]);
      if (branch == kRootPath) continue;
      const FunctionId function = paths.function(branch);
      ++things;
      mixed = mixed || (kind != kNoFunction && function != kind);
      kind = function;
    }
    kinds.tested += things > 1 ? 1 : 0;
    kinds.pure += things > 1 && !mixed ? 1 : 0;
    kinds.of_instance.push_back(mixed ? kNoFunction : kind);
    if (!mixed && kind != kNoFunction) ++kinds.counts[kind];
    begin = end;
  }
  return kinds;
}

}  // namespace

std::vector<FunctionId> FindHandlers(const Timelines& timelines, const FunctionPaths& paths,
                                     const LoopVerdict& loop, const std::vector<bool>& idle_wait,
                                     const std::vector<trace::Instance>& instances) {
  const std::vector<FunctionId> none(instances.size(), kNoFunction);
  if (loop.idle == kNoFunction) return none;
  const Seen seen = Look(timelines, paths, loop, idle_wait, instances);
  std::vector<PathId> loops = loop.loops;
  for (size_t step = 0; step < kMaxLevels; ++step) {
    Branches branches(paths, loops);
    const Level level = CountLevel(paths, seen, branches);
    if (level.total == 0) return none;
    if (level.most * 100 >= level.total * kSharedPercent) {
      loops = level.heaviest;
      continue;
    }
    Kinds kinds = SortInstances(paths, seen, branches);
    if (kinds.tested < kMinTested || kinds.pure * 100 < kinds.tested * kPurePercent) return none;
    for (FunctionId& kind : kinds.of_instance) {
      if (kind != kNoFunction && kinds.counts[kind] < kMinOfKind) kind = kNoFunction;
    }
    return kinds.of_instance;
  }
  return none;
}

}  // namespace culprit::waitgraph
