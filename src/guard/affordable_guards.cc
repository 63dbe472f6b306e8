// SPDX-License-Identifier: Apache-2.0
#include "guard/affordable_guards.h"

#include <algorithm>
#include <set>

#include "guard/context_bits.h"
#include "guard/runtime/wire.h"
#include "guard/type_judgement.h"

namespace culprit::guard {
namespace {

constexpr uint32_t kMaxTrials = 64;
// Of a guard that tells nothing that others do not tell, in training: a hit a unit. More were
// strcmp and its like, by themselves a third of all hits, and no unit was told by them.
constexpr uint64_t kMaxRedundantHits = 1'000'000;
// What a hit a unit is to bring: one unit in so many told right that was not.
constexpr uint64_t kUnitsOfAHit = 1'000;
constexpr size_t kMaxContexts = wire::kContextWords * 64;

// The preferred ones first, then the others in their order, as far as they fit. One that gained
// nothing when it was chosen may have so many hits.
AffordableGuards TakeInOrder(const Profile& profile, const AffordableOptions& options,
                             const std::set<uint32_t>& preferred, uint64_t redundant_hits) {
  AffordableGuards result;
  size_t contexts = 0;
  const auto take = [&](uint32_t number) {
    const Guard& guard = profile.guards[number];
    const bool affordable =
        guard.hits_per_mega_unit <= options.max_hits_per_mega_unit &&
        result.hits_per_mega_unit <= options.max_hits_per_mega_unit - guard.hits_per_mega_unit;
    if (result.numbers.size() >= options.max_guards || (!guard.boundary && !affordable)) return;
    if (contexts + guard.contexts.size() > kMaxContexts) return;
    contexts += guard.contexts.size();
    result.hits_per_mega_unit += guard.hits_per_mega_unit;
    result.numbers.push_back(number);
  };
  const auto count = static_cast<uint32_t>(profile.guards.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (profile.guards[i].boundary) take(i);
  }
  for (const uint32_t number : preferred) take(number);
  for (uint32_t i = 0; i < count; ++i) {
    const Guard& guard = profile.guards[i];
    const bool dear = guard.gain_microbits == 0 && guard.hits_per_mega_unit > redundant_hits;
    if (!guard.boundary && !dear && !preferred.contains(i)) take(i);
  }
  std::sort(result.numbers.begin(), result.numbers.end());
  const Judgement judgement = Judge(profile, GuardsOf(profile, result), kBothHalves, kBothHalves);
  result.units = judgement.units;
  result.right = judgement.right;
  return result;
}

// More units are told right, and enough more for the hits that it takes.
bool IsWorthIt(const AffordableGuards& then, const AffordableGuards& now) {
  if (then.right <= now.right) return false;
  if (then.hits_per_mega_unit <= now.hits_per_mega_unit) return true;
  const WideSum hits = WideSum{then.hits_per_mega_unit - now.hits_per_mega_unit} * now.units;
  return WideSum{then.right - now.right} * kUnitsOfAHit * 1'000'000 >= hits;
}

}  // namespace

AffordableGuards ChooseAffordable(const Profile& profile, const AffordableOptions& options) {
  std::set<uint32_t> preferred;
  AffordableGuards best = TakeInOrder(profile, options, preferred, kMaxRedundantHits);
  if (best.right < best.units) {
    AffordableGuards with_dear = TakeInOrder(profile, options, preferred, UINT64_MAX);
    if (IsWorthIt(with_dear, best)) best = std::move(with_dear);
  }
  uint32_t trials = 0;
  for (bool better = true; better;) {
    better = false;
    for (uint32_t i = 0; i < profile.guards.size() && best.right < best.units; ++i) {
      if (std::binary_search(best.numbers.begin(), best.numbers.end(), i)) continue;
      if (++trials > kMaxTrials) return best;
      std::set<uint32_t> with = preferred;
      with.insert(i);
      AffordableGuards then = TakeInOrder(profile, options, with, kMaxRedundantHits);
      if (!IsWorthIt(then, best)) continue;
      best = std::move(then);
      preferred = std::move(with);
      better = true;
    }
  }
  return best;
}

std::vector<Guard> GuardsOf(const Profile& profile, const AffordableGuards& affordable) {
  std::vector<Guard> guards;
  for (const uint32_t number : affordable.numbers) guards.push_back(profile.guards[number]);
  return guards;
}

}  // namespace culprit::guard
