// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/type_inference.h"

#include <algorithm>

namespace culprit::guard::runtime {
namespace {

constexpr uint32_t kMillion = 1'000'000;

uint32_t HitSharePpm(const uint64_t* contexts, std::span<const uint32_t> hits, uint64_t total) {
  if (total == 0) return 0;
  uint64_t score = 0;
  for (size_t bit = 0; bit < hits.size(); ++bit) {
    if ((contexts[bit / 64] >> (bit % 64) & 1) != 0) score += hits[bit];
  }
  return static_cast<uint32_t>(score * kMillion / total);
}

TypeVerdict MostHitType(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                        std::span<const uint32_t> hits) {
  uint64_t total = 0;
  for (const uint32_t count : hits) total += count;
  TypeVerdict best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (!IsCandidate(types[i], unit)) continue;
    const uint32_t share = HitSharePpm(types[i].contexts, hits, total);
    const TypeVerdict candidate = {.type = i, .similarity_ppm = share, .matched_ppm = share};
    if (IsNearer(types, candidate, best)) best = candidate;
  }
  return best;
}

uint64_t HashOf(const UnitIdentity& unit) {
  uint64_t hash = unit.loop * uint64_t{4} + unit.kind;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    hash = (hash ^ unit.contexts[i]) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

TypeVerdict InferType(const PlanView& plan, const UnitIdentity& unit,
                      std::span<const uint32_t> hits) {
  const bool counting = plan.header().hit_counting != 0 && !hits.empty();
  const TypeVerdict nearest =
      counting ? MostHitType(plan.types(), unit, hits) : FindNearestType(plan.types(), unit);
  return Recognise(plan.types(), unit, nearest, plan.header().min_similarity_ppm);
}

TypeVerdict InferTypeCached(const LoadedPlan& plan, const UnitIdentity& unit, ThreadState& state) {
  if (plan.view.header().hit_counting != 0) return InferType(plan.view, unit, state.context_hits);
  TypeCacheEntry& entry = state.type_cache[HashOf(unit) % kTypeCacheEntries];
  if (entry.generation == plan.generation && entry.loop == unit.loop && entry.kind == unit.kind &&
      std::equal(entry.contexts, entry.contexts + wire::kContextWords, unit.contexts)) {
    return entry.verdict;
  }
  entry.verdict = InferType(plan.view, unit, {});
  entry.generation = plan.generation;
  entry.loop = unit.loop;
  entry.kind = unit.kind;
  std::copy(unit.contexts, unit.contexts + wire::kContextWords, entry.contexts);
  return entry.verdict;
}

uint64_t ThresholdNs(const PlanView& plan, const TypeVerdict& verdict) {
  uint64_t threshold = plan.header().unknown_ns;
  if (verdict.type != wire::kUnknown) {
    const uint64_t of_type = plan.types()[verdict.type].threshold_ns;
    // A type that is hardly believed must not alarm sooner than none; one that the unit did much
    // more than, not later either.
    const bool believed = verdict.similarity_ppm >= kBelievedPpm || of_type == 0;
    const bool alike = IsAlike(verdict, plan.header().min_similarity_ppm);
    if (believed || alike) threshold = believed ? of_type : std::max(threshold, of_type);
  }
  // None: not known (while calibrating), or not wanted.
  if (threshold == 0) return UINT64_MAX;
  return std::max(threshold, plan.header().floor_ns);
}

uint64_t LargestPossibleThresholdNs(const PlanView& plan, const UnitIdentity& unit) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < plan.types().size(); ++i) {
    const wire::PlanType& type = plan.types()[i];
    if (!IsCandidate(type, unit)) continue;
    bool contains = true;
    for (uint32_t word = 0; word < wire::kContextWords; ++word) {
      contains = contains && (unit.contexts[word] & ~type.contexts[word]) == 0;
    }
    if (contains) largest = std::max(largest, ThresholdNs(plan, {i, kMillion}));
  }
  return largest != 0 ? largest : ThresholdNs(plan, {});
}

}  // namespace culprit::guard::runtime
