// SPDX-License-Identifier: Apache-2.0
//
// The type of a plan that a unit's contexts are nearest to: by Jaccard similarity of
// the sets, among the types of its loop and kind, ties to the smallest threshold. A type
// that training hardly saw (PlanType::kRare) is taken only for units that are surely of
// it: it would draw those to it that do two things which it happens to do as well, such as
// a query and a commit. Of the unit's contexts those count that any other type has: what
// none of them does (an allocator that asks for more memory, as slow units do) says
// nothing about which of them it is. It does say that the unit is not quite like it, so the
// similarity that a verdict has is that of all contexts, and where that is low the others
// must agree the more, and not only in what all units do. If they do not, the unit may
// still have done most of what a type does, some of which hardly any other does, and
// more: a thousand keys where training had one. Then it is of that type.
//
// Pure; of the runtime and of culprit, which asks about units that still run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// Units that are so much like their type are believed to be of it.
inline constexpr uint32_t kBelievedPpm = 900'000;

// So much of the contexts that count must be alike where all of them are not.
inline constexpr uint32_t kRecognisedPpm = 750'000;

struct TypeVerdict {
  uint32_t type = wire::kUnknown;
  uint32_t similarity_ppm = 0;
  uint32_t matched_ppm = 0;  // by the contexts that types have: what decides
};

struct UnitIdentity {
  uint32_t loop = 0;
  uint32_t kind = 0;
  const uint64_t* contexts = nullptr;  // kContextWords
};

inline bool IsRare(const wire::PlanType& type) { return (type.flags & wire::PlanType::kRare) != 0; }

inline bool IsCandidate(const wire::PlanType& type, const UnitIdentity& unit) {
  return type.loop == unit.loop && type.kind == unit.kind;
}

// Two units that hit nothing are alike.
inline uint32_t JaccardPpm(const uint64_t* a, const uint64_t* b) {
  constexpr uint64_t kMillion = 1'000'000;
  uint64_t both = 0;
  uint64_t either = 0;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    both += static_cast<uint64_t>(std::popcount(a[i] & b[i]));
    either += static_cast<uint64_t>(std::popcount(a[i] | b[i]));
  }
  return static_cast<uint32_t>(either == 0 ? kMillion : both * kMillion / either);
}

// The contexts that count of those of a unit.
struct CountedContexts {
  uint64_t words[wire::kContextWords] = {};

  CountedContexts(std::span<const wire::PlanType> types, const UnitIdentity& unit) {
    for (const wire::PlanType& type : types) {
      if (!IsCandidate(type, unit) || IsRare(type)) continue;
      for (uint32_t i = 0; i < wire::kContextWords; ++i) words[i] |= type.contexts[i];
    }
    for (uint32_t i = 0; i < wire::kContextWords; ++i) words[i] &= unit.contexts[i];
  }
};

// Whether a candidate is to be preferred to the best so far.
inline bool IsNearer(std::span<const wire::PlanType> types, const TypeVerdict& candidate,
                     const TypeVerdict& best) {
  if (best.type == wire::kUnknown) return true;
  if (candidate.matched_ppm != best.matched_ppm) return candidate.matched_ppm > best.matched_ppm;
  return types[candidate.type].threshold_ns < types[best.type].threshold_ns;
}

inline TypeVerdict VerdictOn(std::span<const wire::PlanType> types, uint32_t type,
                             const UnitIdentity& unit, const CountedContexts& counted) {
  TypeVerdict verdict = {.type = type,
                         .similarity_ppm = JaccardPpm(types[type].contexts, unit.contexts)};
  verdict.matched_ppm = IsRare(types[type]) ? verdict.similarity_ppm
                                            : JaccardPpm(types[type].contexts, counted.words);
  return verdict;
}

// Unknown: there is no type of its loop and kind.
inline TypeVerdict FindNearestType(std::span<const wire::PlanType> types,
                                   const UnitIdentity& unit) {
  const CountedContexts counted(types, unit);
  TypeVerdict best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (!IsCandidate(types[i], unit)) continue;
    const TypeVerdict candidate = VerdictOn(types, i, unit, counted);
    if (IsRare(types[i]) && candidate.similarity_ppm < kBelievedPpm) continue;
    if (IsNearer(types, candidate, best)) best = candidate;
  }
  return best;
}

// Of the unit's contexts those that no more than one in so many candidates have, or one alone.
struct ContextsOfFew {
  uint64_t words[wire::kContextWords] = {};

  ContextsOfFew(std::span<const wire::PlanType> types, const UnitIdentity& unit, uint32_t one_in) {
    uint32_t candidates = 0;
    for (const wire::PlanType& type : types) candidates += IsCandidate(type, unit) ? 1 : 0;
    for (uint32_t i = 0; i < wire::kContextWords; ++i) {
      for (uint64_t left = unit.contexts[i]; left != 0; left &= left - 1) {
        const uint64_t bit = left & -left;
        uint32_t having = 0;
        for (const wire::PlanType& type : types) {
          having += IsCandidate(type, unit) && (type.contexts[i] & bit) != 0 ? 1 : 0;
        }
        if (one_in * having <= std::max(candidates, one_in)) words[i] |= bit;
      }
    }
  }
  bool AnyOf(const wire::PlanType& type) const {
    bool any = false;
    for (uint32_t i = 0; i < wire::kContextWords; ++i) any |= (words[i] & type.contexts[i]) != 0;
    return any;
  }
};

// Most others do not have a distinctive context, hardly any has a rare one.
inline constexpr uint32_t kDistinctiveOneIn = 2;
inline constexpr uint32_t kRareOneIn = 8;

// The unit did most of what units of the type do.
inline bool DidMostOf(const wire::PlanType& type, const UnitIdentity& unit) {
  uint64_t done = 0;
  uint64_t all = 0;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    done += static_cast<uint64_t>(std::popcount(type.contexts[i] & unit.contexts[i]));
    all += static_cast<uint64_t>(std::popcount(type.contexts[i]));
  }
  return all != 0 && done * 1'000'000 >= all * kRecognisedPpm;
}

// By all contexts, or more so by those that count.
inline bool IsAlike(const TypeVerdict& nearest, uint32_t min_similarity_ppm) {
  return nearest.similarity_ppm >= min_similarity_ppm ||
         nearest.matched_ppm >= std::max(kRecognisedPpm, min_similarity_ppm);
}

// The type that a report may name, given the nearest; unknown if there is none, with the
// similarity of the nearest.
inline TypeVerdict Recognise(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                             const TypeVerdict& nearest, uint32_t min_similarity_ppm) {
  if (nearest.type == wire::kUnknown || nearest.similarity_ppm >= min_similarity_ppm) {
    return nearest;
  }
  if (IsAlike(nearest, min_similarity_ppm) &&
      ContextsOfFew(types, unit, kDistinctiveOneIn).AnyOf(types[nearest.type])) {
    return nearest;
  }
  const CountedContexts counted(types, unit);
  const ContextsOfFew rare(types, unit, kRareOneIn);
  TypeVerdict best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (!IsCandidate(types[i], unit) || IsRare(types[i])) continue;
    if (!DidMostOf(types[i], unit) || !rare.AnyOf(types[i])) continue;
    const TypeVerdict candidate = VerdictOn(types, i, unit, counted);
    if (IsNearer(types, candidate, best)) best = candidate;
  }
  if (best.type != wire::kUnknown) return best;
  return {wire::kUnknown, nearest.similarity_ppm, nearest.matched_ppm};
}

}  // namespace culprit::guard::runtime
