// SPDX-License-Identifier: Apache-2.0
#include "guard/misleading_contexts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "guard/context_bits.h"

namespace culprit::guard {
namespace {

constexpr uint32_t kMaxKept = 16;  // contexts that were tried and do no harm

void RemoveContext(const CalledContext& context, std::vector<Guard>& guards) {
  for (Guard& guard : guards) {
    if (guard.function == context.function) std::erase(guard.contexts, context.context);
  }
  std::erase_if(guards,
                [](const Guard& guard) { return guard.contexts.empty() && !guard.boundary; });
}

// By context: units that were taken for another type, have it, and whose own type
// has it not. Most first.
std::vector<std::pair<uint64_t, CalledContext>> Suspects(const Profile& profile, uint32_t halves,
                                                         const Judgement& now,
                                                         const std::vector<Guard>& guards) {
  const ContextBits bits(profile, guards);
  const std::vector<ContextSet> of_types = bits.OfTypes(halves);
  std::vector<uint64_t> units(bits.size());
  for (const Judgement::Wrong& wrong : now.wrong) {
    const UnitShape& shape = profile.shapes[wrong.shape];
    const ContextSet entered = bits.OfShape(shape);
    for (uint32_t bit = 0; bit < bits.size(); ++bit) {
      const uint64_t strange = entered[bit / 64] & ~of_types[shape.type][bit / 64];
      if ((strange >> (bit % 64) & 1) != 0) units[bit] += UnitsOf(shape, halves);
    }
  }
  std::vector<std::pair<uint64_t, CalledContext>> suspects;
  for (const Guard& guard : guards) {
    for (const GuardContext& context : guard.contexts) {
      const uint32_t bit = bits.BitOf({guard.function, context});
      if (bit != kNoIndex && units[bit] > 0) {
        suspects.push_back({UINT64_MAX - units[bit], {guard.function, context}});
      }
    }
  }
  std::sort(suspects.begin(), suspects.end());
  return suspects;
}

}  // namespace

Judgement DropMisleadingContexts(const Profile& profile, uint32_t halves, Judgement now,
                                 std::vector<Guard>& guards) {
  std::set<CalledContext> kept;
  while (kept.size() < kMaxKept) {
    bool dropped = false;
    for (const auto& [rank, context] : Suspects(profile, halves, now, guards)) {
      if (kept.size() == kMaxKept) break;
      if (kept.contains(context)) continue;
      std::vector<Guard> without = guards;
      RemoveContext(context, without);
      Judgement then = Judge(profile, without, halves, halves);
      if (then.right <= now.right) {
        kept.insert(context);
        continue;
      }
      guards = std::move(without);
      now = std::move(then);
      dropped = true;
      break;
    }
    if (!dropped) break;
  }
  return now;
}

}  // namespace culprit::guard
