// SPDX-License-Identifier: Apache-2.0
#include "guard/affordable_guards.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

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

// Other than by their order.
struct Wishes {
  std::set<uint32_t> preferred;  // taken first
  std::set<uint32_t> left_out;
};

// The preferred ones first, then the others in their order, as far as they fit. One that gained
// nothing when it was chosen may have so many hits.
AffordableGuards TakeInOrder(const Profile& profile, const AffordableOptions& options,
                             const Wishes& wishes, uint64_t redundant_hits) {
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
  for (const uint32_t number : wishes.preferred) take(number);
  for (uint32_t i = 0; i < count; ++i) {
    const Guard& guard = profile.guards[i];
    const bool dear = guard.gain_microbits == 0 && guard.hits_per_mega_unit > redundant_hits;
    const bool settled = guard.boundary || wishes.preferred.contains(i);
    if (!settled && !dear && !wishes.left_out.contains(i)) take(i);
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

// Tries wishes and keeps those that are worth it.
class Trials {
 public:
  Trials(const Profile& profile, const AffordableOptions& options)
      : profile_(profile),
        options_(options),
        best_(TakeInOrder(profile, options, {}, kMaxRedundantHits)) {
    if (AllRight()) return;
    AffordableGuards with_dear = TakeInOrder(profile, options, {}, UINT64_MAX);
    if (IsWorthIt(with_dear, best_)) best_ = std::move(with_dear);
  }

  // Those that were left out as too dear, in place of later ones.
  void PreferOthers() {
    uint32_t trials = 0;
    for (bool better = true; better;) {
      better = false;
      for (uint32_t i = 0; i < profile_.guards.size() && !AllRight(); ++i) {
        if (IsTaken(i)) continue;
        if (++trials > kMaxTrials) return;
        Wishes wishes = wishes_;
        wishes.preferred.insert(i);
        better |= Try(std::move(wishes));
      }
    }
  }

  // Those that mislead once some of the others are not there; by what is entered most, most units.
  void LeaveOut() {
    std::vector<uint32_t> taken;
    std::copy_if(best_.numbers.begin(), best_.numbers.end(), std::back_inserter(taken),
                 [&](uint32_t number) { return !profile_.guards[number].boundary; });
    std::stable_sort(taken.begin(), taken.end(), [&](uint32_t a, uint32_t b) {
      return profile_.guards[a].hits_per_mega_unit > profile_.guards[b].hits_per_mega_unit;
    });
    taken.resize(std::min<size_t>(taken.size(), kMaxTrials));
    for (const uint32_t number : taken) {
      if (NearlyAllRight()) return;
      if (!IsTaken(number)) continue;
      Wishes wishes = wishes_;
      wishes.preferred.erase(number);
      wishes.left_out.insert(number);
      Try(std::move(wishes));
    }
  }

  AffordableGuards Take() { return std::move(best_); }

 private:
  bool AllRight() const { return best_.right == best_.units; }
  bool NearlyAllRight() const {
    return (best_.units - best_.right) * kUnitsOfAHit < best_.units || AllRight();
  }
  bool IsTaken(uint32_t number) const {
    return std::binary_search(best_.numbers.begin(), best_.numbers.end(), number);
  }
  bool Try(Wishes wishes) {
    AffordableGuards then = TakeInOrder(profile_, options_, wishes, kMaxRedundantHits);
    if (!IsWorthIt(then, best_)) return false;
    best_ = std::move(then);
    wishes_ = std::move(wishes);
    return true;
  }

  const Profile& profile_;
  const AffordableOptions& options_;
  AffordableGuards best_;
  Wishes wishes_;
};

}  // namespace

AffordableGuards ChooseAffordable(const Profile& profile, const AffordableOptions& options) {
  Trials trials(profile, options);
  trials.PreferOthers();
  trials.LeaveOut();
  return trials.Take();
}

std::vector<Guard> GuardsOf(const Profile& profile, const AffordableGuards& affordable) {
  std::vector<Guard> guards;
  for (const uint32_t number : affordable.numbers) guards.push_back(profile.guards[number]);
  return guards;
}

}  // namespace culprit::guard
