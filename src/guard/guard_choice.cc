// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "guard/context_bits.h"
#include "guard/context_numbers.h"
#include "guard/misleading_contexts.h"
#include "guard/steady_contexts.h"
#include "guard/type_entropy.h"
#include "guard/type_judgement.h"

namespace culprit::guard {
namespace {

constexpr size_t kMaxContextsOfGuard = 16;
// What a guard costs beside its hits, in hits per unit: without it functions that
// are hardly ever entered would use up the bits first.
constexpr uint64_t kFixedCostShare = 100;
constexpr uint64_t kOwnWeight = 1000;
constexpr uint32_t kMaxRefused = 16;              // guards that were tried and did not help
constexpr uint64_t kToleratedShare = 10'000;      // one unit in so many
constexpr uint64_t kLevelsOfACost = 8;            // so many calls deeper is the cost once more
constexpr WideSum kLeastGain = WideSum{1} << 26;  // 1/64 bit in all

struct GuardCandidate {
  Guard guard;
  uint64_t hits = 0;
  std::vector<Observation> observations;
};

std::set<uint32_t> BoundaryFunctions(const Profile& profile) {
  std::set<uint32_t> functions;
  for (const ProfileLoop& loop : profile.loops) {
    for (const auto* contexts : CutsOf(loop)) {
      for (const Context& context : *contexts) functions.insert(context.function);
    }
  }
  return functions;
}

// By context: its hits if some units of a loop and kind have it and others have
// not, else 0.
std::vector<uint64_t> TellingHits(const Profile& profile, const ContextNumbers& numbers,
                                  uint32_t halves) {
  std::map<std::pair<uint32_t, wire::UnitKind>, std::vector<const UnitShape*>> groups;
  std::vector<uint64_t> hits(numbers.size());
  for (const UnitShape& shape : profile.shapes) {
    if (UnitsOf(shape, halves) == 0) continue;
    groups[{shape.loop, shape.kind}].push_back(&shape);
    for (size_t i = 0; i < shape.places.size(); ++i) {
      const uint32_t number = numbers.OfPlace(shape.places[i]);
      if (number != kNoIndex) hits[number] += shape.hits[i];
    }
  }
  std::vector<bool> tells(numbers.size());
  for (const auto& [key, shapes] : groups) {
    uint64_t all = 0;
    std::vector<uint64_t> with(numbers.size());
    for (const UnitShape* shape : shapes) {
      all += UnitsOf(*shape, halves);
      for (const uint32_t number : numbers.OfShape(*shape)) with[number] += UnitsOf(*shape, halves);
    }
    for (size_t i = 0; i < with.size(); ++i) {
      if (with[i] > 0 && with[i] < all) tells[i] = true;
    }
  }
  for (size_t i = 0; i < hits.size(); ++i) {
    if (!tells[i]) hits[i] = 0;
  }
  return hits;
}

std::vector<uint32_t> NumbersOf(const Guard& guard, const ContextNumbers& numbers) {
  std::vector<uint32_t> result;
  for (const GuardContext& context : guard.contexts) {
    const uint32_t number = numbers.Find({guard.function, context});
    if (number != kNoIndex) result.push_back(number);
  }
  return result;
}

class GuardChooser {
 public:
  GuardChooser(const Profile& profile, const GuardOptions& options, uint32_t halves)
      : profile_(profile), options_(options), halves_(halves), entropy_(Weights(profile, halves)) {
    for (const UnitShape& shape : profile.shapes) units_ += shape.total_units();
    MakeCandidates();
  }

  std::vector<Guard> Choose() {
    for (const uint32_t function : BoundaryFunctions(profile_)) {
      const auto candidate = candidates_.find(function);
      if (candidate == candidates_.end()) {
        // Every unit has it, so it tells nothing; it costs all the same.
        chosen_.push_back({.function = function,
                           .boundary = true,
                           .hits_per_mega_unit = PerMegaUnit(function_hits_[function])});
        hits_ += function_hits_[function];
        continue;
      }
      Take(candidate->second, entropy_.Gain(candidate->second.observations), true);
      candidates_.erase(candidate);
    }
    while (!entropy_.settled() && chosen_.size() < options_.max_guards) {
      const auto [best, gain] = Best();
      if (best == kNoIndex) break;
      Take(candidates_.at(best), gain, false);
      candidates_.erase(best);
    }
    Judgement now = Judge(profile_, chosen_, halves_, halves_);
    now = DropMisleadingContexts(profile_, halves_, std::move(now), chosen_);
    now = Sharpen(std::move(now));
    now = DropMisleadingContexts(profile_, halves_, std::move(now), chosen_);
    AddSteady(now);
    return chosen_;
  }

 private:
  static std::vector<TypeEntropy::Weighted> Weights(const Profile& profile, uint32_t halves) {
    std::map<std::pair<uint32_t, wire::UnitKind>, uint32_t> groups;
    std::vector<TypeEntropy::Weighted> weights;
    for (const UnitShape& shape : profile.shapes) {
      const auto [group, made] =
          groups.try_emplace({shape.loop, shape.kind}, static_cast<uint32_t>(groups.size()));
      weights.push_back({shape.type, group->second, UnitsOf(shape, halves)});
    }
    return weights;
  }

  void MakeCandidates() {
    const ContextNumbers numbers(profile_);
    const std::vector<uint64_t> hits = TellingHits(profile_, numbers, halves_);
    std::map<uint32_t, std::vector<std::pair<uint64_t, GuardContext>>> contexts;
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      if (hits[i] == 0) continue;
      contexts[numbers.at(i).function].emplace_back(UINT64_MAX - hits[i], numbers.at(i).context);
    }
    std::vector<bool> kept(numbers.size());
    for (auto& [function, rows] : contexts) {
      std::sort(rows.begin(), rows.end());
      if (rows.size() > kMaxContextsOfGuard) rows.resize(kMaxContextsOfGuard);
      Guard& guard = candidates_[function].guard;
      guard.function = function;
      for (const auto& [rank, context] : rows) guard.contexts.push_back(context);
      std::sort(guard.contexts.begin(), guard.contexts.end());
    }
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      const auto candidate = candidates_.find(numbers.at(i).function);
      if (candidate == candidates_.end()) continue;
      const std::vector<GuardContext>& of_guard = candidate->second.guard.contexts;
      kept[i] = std::binary_search(of_guard.begin(), of_guard.end(), numbers.at(i).context);
    }
    for (uint32_t i = 0; i < profile_.shapes.size(); ++i) Observe(i, numbers, kept);
    CountHits();
  }

  // What a shape shows of each function: the set of its contexts.
  void Observe(uint32_t number, const ContextNumbers& numbers, const std::vector<bool>& kept) {
    const std::vector<uint32_t> contexts = numbers.OfShape(profile_.shapes[number]);
    for (size_t i = 0; i < contexts.size();) {
      const uint32_t function = numbers.at(contexts[i]).function;
      std::vector<uint32_t> seen;
      for (; i < contexts.size() && numbers.at(contexts[i]).function == function; ++i) {
        if (kept[contexts[i]]) seen.push_back(contexts[i]);
      }
      if (seen.empty()) continue;
      const auto outcome =
          outcomes_.try_emplace(std::move(seen), static_cast<uint32_t>(outcomes_.size())).first;
      candidates_.at(function).observations.push_back({number, outcome->second});
    }
  }

  // All entries of a function cost, at whatever depth. Turns are not among a unit's places
  // (ShapeTable::EndSearch): there is one for each.
  void CountHits() {
    function_hits_.resize(profile_.functions.size());
    for (const UnitShape& shape : profile_.shapes) {
      for (size_t i = 0; i < shape.places.size(); ++i) {
        const Place& place = profile_.places[shape.places[i]];
        function_hits_[profile_.paths[place.path].function] += shape.hits[i];
      }
      for (const Context& turn : profile_.loops[shape.loop].turns) {
        function_hits_[turn.function] += shape.total_units();
      }
    }
    for (auto& [function, candidate] : candidates_) candidate.hits = function_hits_[function];
  }

  uint64_t CostOf(const GuardCandidate& candidate) const {
    return candidate.hits + units_ / kFixedCostShare + 1;
  }
  bool Fits(const GuardCandidate& candidate) const {
    return chosen_.size() < options_.max_guards &&
           bits_ + candidate.guard.contexts.size() <= options_.max_context_bits &&
           PerMegaUnit(hits_ + candidate.hits) <= options_.max_hits_per_mega_unit;
  }

  // Gains do not grow much as others are chosen, but they may: so all are asked.
  std::pair<uint32_t, WideSum> Best() {
    uint32_t best = kNoIndex;
    WideSum best_gain = 0;
    uint64_t best_cost = 1;
    for (auto& [function, candidate] : candidates_) {
      if (!Fits(candidate)) continue;
      const WideSum gain = entropy_.Gain(candidate.observations);
      if (gain < kLeastGain) continue;
      const uint64_t cost = CostOf(candidate);
      // Down to 2^-16 bits: the products stay below 2^128.
      if (best != kNoIndex && (gain >> 16) * best_cost <= (best_gain >> 16) * cost) continue;
      best = function;
      best_gain = gain;
      best_cost = cost;
    }
    return {best, best_gain};
  }

  uint64_t PerMegaUnit(uint64_t hits) const {
    return units_ == 0 ? 0 : static_cast<uint64_t>(WideSum{hits} * 1'000'000 / units_);
  }

  void Take(GuardCandidate& candidate, WideSum gain, bool boundary) {
    candidate.guard.boundary = boundary;
    candidate.guard.hits_per_mega_unit = PerMegaUnit(candidate.hits);
    candidate.guard.gain_microbits =
        units_ == 0 ? 0 : static_cast<uint64_t>(gain / units_ * 1'000'000 >> 32);
    bits_ += candidate.guard.contexts.size();
    hits_ += candidate.hits;
    entropy_.Split(candidate.observations);
    chosen_.push_back(std::move(candidate.guard));
  }

  // Contexts that leave nothing open may still lead to the wrong type, because the
  // nearest is taken and units of a type differ. Adds functions that units taken
  // for others have in common with their own type, as long as more come out right.
  Judgement Sharpen(Judgement now) {
    for (uint32_t refused = 0; refused < kMaxRefused && !now.wrong.empty();) {
      const uint32_t best = BestAgainst(now.wrong);
      if (best == kNoIndex) break;
      GuardCandidate candidate = std::move(candidates_.at(best));
      candidates_.erase(best);
      std::vector<Guard> with = chosen_;
      with.push_back(candidate.guard);
      Judgement then = Judge(profile_, with, halves_, halves_);
      if (then.right <= now.right) {
        ++refused;
        continue;
      }
      Take(candidate, 0, false);
      now = std::move(then);
    }
    return now;
  }

  // Guards that tell nothing new, but tell it once more: first what parts types that little
  // does, then what a type is known by. Hardly any unit may be told less well for them; if
  // none might, a few odd ones would keep whole types from being known by more than one context.
  void AddSteady(const Judgement& before) {
    const uint64_t tolerated = std::min(before.right, before.units / kToleratedShare);
    const uint64_t least_right = before.right - tolerated;
    const ContextNumbers numbers(profile_);
    SteadyContexts steady(profile_, numbers, halves_);
    for (const Guard& guard : chosen_) steady.Add(NumbersOf(guard, numbers));
    for (const auto wanted : {&SteadyContexts::StillClose, &SteadyContexts::StillWanted}) {
      std::vector<SteadyCandidate> candidates = SteadyCandidates(steady, numbers, wanted);
      if (wanted == &SteadyContexts::StillClose) PreferOuter(numbers, candidates);
      for (uint32_t refused = 0; refused < kMaxRefused;) {
        const std::optional<SteadyCandidate> best = BestSteady(candidates, steady, wanted);
        if (!best) break;
        GuardCandidate candidate = candidates_.at(best->function);
        candidate.guard.contexts.clear();
        for (const uint32_t number : best->contexts) {
          candidate.guard.contexts.push_back(numbers.at(number).context);
        }
        std::vector<Guard> with = chosen_;
        with.push_back(candidate.guard);
        const Judgement then = Judge(profile_, with, halves_, halves_);
        if (then.right < least_right) {
          ++refused;
          continue;
        }
        steady.Add(best->contexts);
        candidates_.erase(best->function);
        Take(candidate, 0, false);
      }
    }
  }

  using Wanted = uint64_t (SteadyContexts::*)(const std::vector<uint32_t>&) const;

  // A function with those of its contexts that were wanted at first.
  struct SteadyCandidate {
    uint32_t function = kNoIndex;
    std::vector<uint32_t> contexts;
    uint64_t cost = 1;
    uint64_t wanted = UINT64_MAX;  // at most
  };

  std::vector<SteadyCandidate> SteadyCandidates(const SteadyContexts& steady,
                                                const ContextNumbers& numbers,
                                                Wanted wanted) const {
    std::vector<SteadyCandidate> candidates;
    for (const auto& [function, candidate] : candidates_) {
      std::vector<uint32_t> contexts = NumbersOf(candidate.guard, numbers);
      std::erase_if(contexts, [&](uint32_t number) { return (steady.*wanted)({number}) == 0; });
      if (contexts.empty()) continue;
      candidates.push_back({function, std::move(contexts), CostOf(candidate)});
    }
    return candidates;
  }

  // What lies deep among the calls hangs on more decisions, and what was always done in training
  // (by the first update of a transaction, where training had one in each) may not be on another
  // load.
  static void PreferOuter(const ContextNumbers& numbers, std::vector<SteadyCandidate>& candidates) {
    for (SteadyCandidate& candidate : candidates) {
      uint64_t levels = 0;
      for (const uint32_t number : candidate.contexts) levels += numbers.LevelOf(number);
      candidate.cost *= kLevelsOfACost + levels / candidate.contexts.size();
    }
  }

  // Takes out the one that is wanted most per hit, the first of equals. What was wanted the last
  // time bounds what is wanted now, so few are asked again.
  std::optional<SteadyCandidate> BestSteady(std::vector<SteadyCandidate>& candidates,
                                            const SteadyContexts& steady, Wanted wanted) const {
    const auto before = [](const SteadyCandidate& x, const SteadyCandidate& y) {
      const WideSum mine = WideSum{x.wanted} * y.cost;
      const WideSum others = WideSum{y.wanted} * x.cost;
      return mine != others ? mine > others : x.function < y.function;
    };
    std::erase_if(candidates, [&](const SteadyCandidate& candidate) {
      return candidate.wanted == 0 || !Fits(candidates_.at(candidate.function));
    });
    std::sort(candidates.begin(), candidates.end(), before);
    auto best = candidates.end();
    for (auto candidate = candidates.begin(); candidate != candidates.end(); ++candidate) {
      if (best != candidates.end() && before(*best, *candidate)) break;
      candidate->wanted = (steady.*wanted)(candidate->contexts);
      if (best == candidates.end() || before(*candidate, *best)) best = candidate;
    }
    if (best == candidates.end() || best->wanted == 0) return std::nullopt;
    SteadyCandidate result = std::move(*best);
    candidates.erase(best);
    return result;
  }

  uint32_t BestAgainst(const std::vector<Judgement::Wrong>& wrong) const {
    std::map<uint32_t, uint64_t> weight;  // by shape
    for (const Judgement::Wrong& one : wrong) {
      weight[one.shape] += UnitsOf(profile_.shapes[one.shape], halves_);
    }
    std::map<uint32_t, std::map<uint32_t, uint64_t>> rivals;  // own type, then the other
    for (const Judgement::Wrong& one : wrong) {
      rivals[profile_.shapes[one.shape].type][one.taken_for] += weight[one.shape];
    }
    uint32_t best = kNoIndex;
    uint64_t best_score = 0;
    uint64_t best_cost = 1;
    for (const auto& [function, candidate] : candidates_) {
      if (!Fits(candidate)) continue;
      const uint64_t score = ScoreAgainst(candidate, rivals);
      const uint64_t cost = CostOf(candidate);
      if (WideSum{score} * best_cost <= WideSum{best_score} * cost) continue;
      best = function;
      best_score = score;
      best_cost = cost;
    }
    return best;
  }

  // Wrong units whose type mostly shows something that the rival mostly does not:
  // it brings them nearer to their own. What only the rival shows helps less.
  uint64_t ScoreAgainst(const GuardCandidate& candidate,
                        const std::map<uint32_t, std::map<uint32_t, uint64_t>>& rivals) const {
    std::map<uint32_t, std::map<uint32_t, uint64_t>> shown;  // type, then outcome
    for (const Observation& seen : candidate.observations) {
      const UnitShape& shape = profile_.shapes[seen.shape];
      shown[shape.type][seen.outcome] += UnitsOf(shape, halves_);
    }
    const auto usual = [&](uint32_t type) {
      const auto found = shown.find(type);
      if (found == shown.end()) return kNoIndex;
      for (const auto& [outcome, units] : found->second) {
        if (units * 10 >= profile_.types[type].units * 8 / (halves_ == kBothHalves ? 1 : 2)) {
          return outcome;
        }
      }
      return kNoIndex;
    };
    uint64_t score = 0;
    for (const auto& [type, others] : rivals) {
      const uint32_t own = usual(type);
      for (const auto& [other, units] : others) {
        if (own != usual(other)) score += own == kNoIndex ? units : units * kOwnWeight;
      }
    }
    return score;
  }

  const Profile& profile_;
  const GuardOptions& options_;
  const uint32_t halves_;
  uint64_t units_ = 0;
  TypeEntropy entropy_;
  std::map<std::vector<uint32_t>, uint32_t> outcomes_;
  std::map<uint32_t, GuardCandidate> candidates_;
  std::vector<uint64_t> function_hits_;
  std::vector<Guard> chosen_;
  size_t bits_ = 0;
  uint64_t hits_ = 0;
};

void CountAmbiguous(Profile& profile) {
  using Clarity = ContextNumbers::Clarity;
  const ContextNumbers numbers(profile);
  InferenceQuality& quality = profile.quality;
  for (const UnitShape& shape : profile.shapes) {
    for (size_t i = 0; i < shape.places.size(); ++i) {
      const Clarity clarity = numbers.ClarityOf(shape.places[i]);
      quality.hits += shape.hits[i];
      if (clarity != Clarity::kClear) quality.ambiguous_hits += shape.hits[i];
      if (clarity == Clarity::kAmbiguous || clarity == Clarity::kVariable) {
        quality.dropped_hits += shape.hits[i];
      }
    }
  }
}

}  // namespace

void ChooseGuards(const GuardOptions& options, Profile& profile) {
  profile.quality = {};
  profile.guards = GuardChooser(profile, options, kBothHalves).Choose();
  const Judgement all =
      Judge(profile, profile.guards, kBothHalves, kBothHalves, Inference::kOfTheRuntime);
  profile.quality.units = all.units;
  profile.quality.right = all.right;
  const std::vector<Guard> of_first = GuardChooser(profile, options, 1).Choose();
  const Judgement held_out = Judge(profile, of_first, 1, 2, Inference::kOfTheRuntime);
  profile.quality.held_out_units = held_out.units;
  profile.quality.held_out_right = held_out.right;
  CountAmbiguous(profile);
}

}  // namespace culprit::guard
