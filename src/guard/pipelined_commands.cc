// SPDX-License-Identifier: Apache-2.0
#include "guard/pipelined_commands.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "guard/latency_stats.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kMinPipelined = 8;  // handlers with several commands

// What happened in one handler.
struct Handled {
  size_t iteration = 0;
  size_t begin = 0;  // events [begin, end)
  size_t end = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
};

std::vector<Handled> SplitHandlers(const std::vector<SampledIteration>& iterations,
                                   const SubUnitLevels& levels) {
  std::vector<Handled> all;
  for (size_t n = 0; n < iterations.size(); ++n) {
    const auto& events = iterations[n].events;
    bool inside = false;
    for (size_t i = 0; i <= events.size(); ++i) {
      const bool ends = i == events.size() || IsOneOf(levels.tails, events[i]);
      const bool begins = !ends && IsOneOf(levels.handlers, events[i]);
      if (inside && (ends || begins)) all.back().end = i;
      if (ends) inside = false;
      if (begins) {
        all.push_back({.iteration = n, .begin = i, .end = i});
        inside = true;
      }
      if (!inside || i == events.size()) continue;
      if (events[i].function == IterationEvent::kInput) {
        all.back().bytes += static_cast<uint32_t>(events[i].depth);
      } else {
        ++all.back().entries;
      }
    }
  }
  std::erase_if(all, [](const Handled& handled) { return handled.bytes == 0; });
  return all;
}

// Sums for the correlation of entries (x) and bytes (y).
struct Moments {
  WideSum n = 0;
  WideSum x = 0;
  WideSum y = 0;
  WideSum xx = 0;
  WideSum yy = 0;
  WideSum xy = 0;
};

// Sums over handlers with input, for one context.
struct CommandCount {
  uint64_t handlers = 0;   // that entered it
  uint64_t pipelined = 0;  // several times
  uint64_t entries = 0;
  uint64_t firsts = 0;  // sum of first positions
  // Work before the first entry and behind the last, as thousandths of an even
  // share of the rounds.
  uint64_t before_shares = 0;
  uint64_t behind_shares = 0;
  // Apart for handlers that entered different contexts: long commands and many
  // short ones are not to be mixed up.
  std::map<uint32_t, Moments> moments;
};

int BitsAbove62(WideSum value) {
  int bits = 0;
  for (value >>= 62; value > 0; value >>= 1) ++bits;
  return bits;
}

// Whether entries grow with bytes among like handlers: Pearson's r, pooled over
// the groups in which the number of entries varies, is positive and r^2 at least
// 1/2. In integers of 62 bits.
bool Follows(const CommandCount& count) {
  WideSum with = 0;
  WideSum against = 0;
  WideSum of_x = 0;
  WideSum of_y = 0;
  for (const auto& [group, sums] : count.moments) {
    const WideSum spread = sums.n * sums.xx - sums.x * sums.x;
    if (spread == 0) continue;
    of_x += spread / sums.n;
    of_y += (sums.n * sums.yy - sums.y * sums.y) / sums.n;
    const WideSum plus = sums.n * sums.xy;
    const WideSum minus = sums.x * sums.y;
    if (plus > minus) with += (plus - minus) / sums.n;
    if (plus < minus) against += (minus - plus) / sums.n;
  }
  if (with <= against || of_x == 0 || of_y == 0) return false;
  const int shift_x = BitsAbove62(of_x);
  int shift_y = BitsAbove62(of_y);
  shift_y += (shift_x + shift_y) % 2;
  const WideSum r = (with - against) >> ((shift_x + shift_y) / 2);
  return 2 * r * r >= (of_x >> shift_x) * (of_y >> shift_y);
}

std::map<uint64_t, CommandCount> CountCommands(const std::vector<SampledIteration>& iterations,
                                               const std::vector<Handled>& handled) {
  std::map<uint64_t, CommandCount> counts;
  struct Seen {
    uint64_t entries = 0;
    uint64_t first = 0;  // positions among the entries of anything
    uint64_t last = 0;
  };
  std::map<std::vector<uint64_t>, uint32_t> groups;
  for (const Handled& one : handled) {
    std::map<uint64_t, Seen> seen;
    uint64_t position = 0;
    for (size_t i = one.begin; i < one.end; ++i) {
      const IterationEvent& event = iterations[one.iteration].events[i];
      if (event.function == IterationEvent::kInput) continue;
      Seen& of_event = seen[KeyOf(event)];
      if (of_event.entries++ == 0) of_event.first = position;
      of_event.last = position++;
    }
    std::vector<uint64_t> keys;
    for (const auto& [key, of_key] : seen) keys.push_back(key);
    const uint32_t group =
        groups.try_emplace(std::move(keys), static_cast<uint32_t>(groups.size())).first->second;
    for (const auto& [key, of_key] : seen) {
      CommandCount& count = counts[key];
      ++count.handlers;
      count.firsts += of_key.first;
      count.entries += of_key.entries;
      Moments& sums = count.moments[group];
      sums.n += 1;
      sums.x += of_key.entries;
      sums.y += one.bytes;
      sums.xx += WideSum{of_key.entries} * of_key.entries;
      sums.yy += WideSum{one.bytes} * one.bytes;
      sums.xy += WideSum{of_key.entries} * one.bytes;
      if (of_key.entries < 2) continue;
      ++count.pipelined;
      count.before_shares += of_key.first * of_key.entries * 1000 / one.entries;
      count.behind_shares += (one.entries - of_key.last) * of_key.entries * 1000 / one.entries;
    }
  }
  return counts;
}

}  // namespace

std::vector<Context> FindPipelinedCommands(const std::vector<SampledIteration>& iterations,
                                           const SubUnitLevels& levels) {
  const std::vector<Handled> handled = SplitHandlers(iterations, levels);
  if (handled.size() < kMinPipelined) return {};
  // Of one depth about the rarest (commands, not their words), of these the first
  // of a round.
  std::vector<std::tuple<int32_t, uint64_t, uint64_t, uint64_t>> order;
  for (const auto& [key, count] : CountCommands(iterations, handled)) {
    if (IsOneOf(levels.handlers, {ContextOf(key).function, ContextOf(key).depth})) continue;
    if (count.handlers * 100 < handled.size() * 90) continue;
    if (count.pipelined < kMinPipelined || count.pipelined * 200 < handled.size()) continue;
    const uint64_t uneven = count.pipelined * 1500;
    if (count.before_shares > uneven || count.behind_shares > uneven) continue;
    if (!Follows(count)) continue;
    order.emplace_back(ContextOf(key).depth, count.entries, count.firsts, key);
  }
  if (order.empty()) return {};
  std::sort(order.begin(), order.end());
  const auto [depth, rarest, first_positions, first_key] = order.front();
  uint64_t best = first_key;
  uint64_t earliest = first_positions;
  for (const auto& [other_depth, entries, firsts, key] : order) {
    if (other_depth != depth || entries * 4 > rarest * 5 || firsts >= earliest) continue;
    best = key;
    earliest = firsts;
  }
  return {ContextOf(best)};
}

}  // namespace culprit::guard
