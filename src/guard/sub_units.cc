// SPDX-License-Identifier: Apache-2.0
#include "guard/sub_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/flat_map.h"
#include "guard/pipelined_commands.h"

namespace culprit::guard {
namespace {

// A level holds if it explains this share of the ready events, ...
constexpr uint64_t kExplainedPercent = 95;
// ... enters no more than this share too often, ...
constexpr uint64_t kExcessPercent = 2;
// ... and at least so many iterations had several events.
constexpr uint64_t kMinBatches = 8;
// The handlers hold one entry of the iterations' in so many at least.
constexpr uint64_t kLeastWork = 4;
constexpr size_t kMaxTails = 8;
constexpr int kMaxChoices = 8;  // at one depth

// How often each context occurs in each iteration, by depth and context.
struct LevelCounts {
  struct Row {
    uint32_t iteration;
    uint64_t count;
    uint64_t first;  // position in the iteration
  };
  std::map<int32_t, std::map<uint64_t, std::vector<Row>>> by_depth;
};

LevelCounts CountContexts(const std::vector<SampledIteration>& iterations) {
  LevelCounts counts;
  struct Seen {
    uint64_t count = 0;
    uint64_t first = 0;
  };
  FlatMap<uint64_t, Seen> of_one;
  for (uint32_t i = 0; i < iterations.size(); ++i) {
    of_one.Clear();
    const auto& events = iterations[i].events;
    for (size_t at = 0; at < events.size(); ++at) {
      if (events[at].function == IterationEvent::kInput) continue;
      const auto [seen, made] = of_one.Insert(KeyOf(events[at]));
      if (made) seen->first = at;
      ++seen->count;
    }
    of_one.ForEach([&](uint64_t key, const Seen& seen) {
      counts.by_depth[ContextOf(key).depth][key].push_back({i, seen.count, seen.first});
    });
  }
  return counts;
}

// Greedy choice at one depth against what the ready events leave open.
class HandlerLevel {
 public:
  explicit HandlerLevel(const std::vector<SampledIteration>& iterations) {
    for (const SampledIteration& iteration : iterations) {
      ready_.push_back(iteration.ready);
      all_ready_ += iteration.ready;
    }
  }

  // Of `left`, without them. Empty if these make no handler level.
  std::vector<Context> Choose(const std::map<uint64_t, std::vector<LevelCounts::Row>>& contexts,
                              std::set<uint64_t>& left) {
    open_ = ready_;
    std::vector<Context> chosen;
    uint64_t explained = 0;
    uint64_t excess = 0;
    while (true) {
      Gain best;
      uint64_t best_key = 0;
      for (const uint64_t key : left) {
        const Gain gain = GainOf(contexts.at(key));
        if (gain.explained == 0 || gain.excess * 100 > kExcessPercent * gain.explained) continue;
        // Of functions that are entered equally often the first of a round begins it.
        if (std::tie(gain.of_batches, gain.explained, best.firsts) >
            std::tie(best.of_batches, best.explained, gain.firsts)) {
          best = gain;
          best_key = key;
        }
      }
      if (best.explained == 0) break;
      for (const LevelCounts::Row& row : contexts.at(best_key)) {
        open_[row.iteration] -= std::min(open_[row.iteration], row.count);
      }
      explained += best.explained;
      excess += best.excess;
      chosen.push_back(ContextOf(best_key));
      left.erase(best_key);
    }
    if (explained * 100 < kExplainedPercent * all_ready_) return {};
    if (excess * 100 > kExcessPercent * all_ready_) return {};
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

 private:
  struct Gain {
    uint64_t of_batches = 0;  // in iterations with several events: these tell most
    uint64_t explained = 0;
    uint64_t excess = 0;
    uint64_t firsts = 0;  // sum of first positions
  };
  Gain GainOf(const std::vector<LevelCounts::Row>& rows) const {
    Gain gain;
    for (const LevelCounts::Row& row : rows) {
      const uint64_t part = std::min(row.count, open_[row.iteration]);
      gain.explained += part;
      gain.excess += row.count - part;
      gain.firsts += row.first;
      if (ready_[row.iteration] > 1) gain.of_batches += part;
    }
    return gain;
  }

  std::vector<uint64_t> open_;
  std::vector<uint64_t> ready_;
  uint64_t all_ready_ = 0;
};

// Entries from one of the contexts on until something shallower is entered: the
// work that the level holds.
uint64_t WorkBelow(const std::vector<SampledIteration>& iterations,
                   const std::vector<Context>& level) {
  uint64_t entries = 0;
  for (const SampledIteration& iteration : iterations) {
    bool inside = false;
    for (const IterationEvent& event : iteration.events) {
      if (event.function == IterationEvent::kInput) continue;
      inside = event.depth >= level.front().depth && (inside || IsOneOf(level, event));
      entries += inside ? 1 : 0;
    }
  }
  return entries;
}

// Marking events as ready is done as often as handling them, but no work is done
// there, and it may be done at the handlers' depth: of all that fits, at a depth what comes
// first, the shallowest of those that hold most. Where even that is little, the handlers were
// not found, and cutting would leave the work in one piece, as a tail.
std::vector<Context> FindHandlers(const std::vector<SampledIteration>& iterations) {
  uint64_t batches = 0;
  for (const SampledIteration& iteration : iterations) batches += iteration.ready > 1 ? 1 : 0;
  if (batches < kMinBatches || batches * 100 < iterations.size()) return {};
  const LevelCounts counts = CountContexts(iterations);
  std::vector<std::pair<std::vector<Context>, uint64_t>> levels;
  uint64_t most = 0;
  HandlerLevel level(iterations);
  for (const auto& [depth, contexts] : counts.by_depth) {
    std::set<uint64_t> left;
    for (const auto& [key, rows] : contexts) left.insert(key);
    for (int choice = 0; choice < kMaxChoices; ++choice) {
      std::vector<Context> handlers = level.Choose(contexts, left);
      if (handlers.empty()) break;
      const uint64_t work = WorkBelow(iterations, handlers);
      most = std::max(most, work);
      levels.emplace_back(std::move(handlers), work);
    }
  }
  uint64_t entries = 0;
  for (const SampledIteration& iteration : iterations) entries += iteration.events.size();
  if (most * kLeastWork < entries) return {};
  for (auto& [handlers, work] : levels) {
    if (work * 2 >= most) return std::move(handlers);
  }
  return {};
}

struct TailCount {
  uint64_t begins = 0;  // a tail
  uint64_t early = 0;   // iterations in which it came before the last handler
};

std::vector<Context> FindTails(const std::vector<SampledIteration>& iterations,
                               const std::vector<Context>& handlers) {
  std::map<Context, TailCount> counts;
  uint64_t all = 0;
  for (const SampledIteration& iteration : iterations) {
    const auto& events = iteration.events;
    size_t last = events.size();
    while (last > 0 && !IsOneOf(handlers, events[last - 1])) --last;
    if (last == 0) continue;
    const int32_t depth = events[last - 1].depth;
    bool begun = false;
    for (size_t i = last; i < events.size() && !begun; ++i) {
      if (events[i].function == IterationEvent::kInput || events[i].depth > depth) continue;
      ++counts[{events[i].function, events[i].depth}].begins;
      ++all;
      begun = true;
    }
    std::set<Context> early;
    bool handled = false;
    for (size_t i = 0; i + 1 < last; ++i) {
      const bool handler = IsOneOf(handlers, events[i]);
      handled |= handler;
      if (handled && !handler && events[i].depth <= depth) {
        early.insert({events[i].function, events[i].depth});
      }
    }
    for (const Context& context : early) ++counts[context].early;
  }
  std::vector<std::pair<uint64_t, Context>> order;
  for (const auto& [context, count] : counts) {
    if (count.begins * 20 < all || count.early * 100 > count.begins) continue;
    order.emplace_back(UINT64_MAX - count.begins, context);
  }
  std::sort(order.begin(), order.end());
  if (order.size() > kMaxTails) order.resize(kMaxTails);
  std::vector<Context> tails;
  for (const auto& [rank, context] : order) tails.push_back(context);
  std::sort(tails.begin(), tails.end());
  return tails;
}

}  // namespace

SubUnitLevels FindSubUnitLevels(const std::vector<SampledIteration>& iterations) {
  SubUnitLevels levels;
  levels.handlers = FindHandlers(iterations);
  if (levels.handlers.empty()) return levels;
  levels.tails = FindTails(iterations, levels.handlers);
  levels.commands = FindPipelinedCommands(iterations, levels);
  return levels;
}

void IterationSample::Begin(uint64_t ready) {
  taking_ = seen_++ % every_ == 0;
  current_.ready = ready;
  current_.events.clear();
}

void IterationSample::End(bool complete) {
  if (!taking_ || !complete) return;
  taking_ = false;
  events_ += current_.events.size();
  kept_.push_back(current_);
  while (events_ > max_events_ && kept_.size() > 64) Thin();
}

void IterationSample::Thin() {
  every_ *= 2;
  events_ = 0;
  size_t kept = 0;
  for (size_t i = 0; i < kept_.size(); i += 2) {
    if (i != kept) kept_[kept] = std::move(kept_[i]);
    events_ += kept_[kept++].events.size();
  }
  kept_.resize(kept);
}

}  // namespace culprit::guard
