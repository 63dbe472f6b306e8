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
// must agree the more, and not only in what all units do; or the unit did all that the
// type does, some of which hardly any other does, and more: a thousand keys where
// training had one.
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

// Unknown: there is no type of its loop and kind.
inline TypeVerdict FindNearestType(std::span<const wire::PlanType> types,
                                   const UnitIdentity& unit) {
  const CountedContexts counted(types, unit);
  TypeVerdict best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (!IsCandidate(types[i], unit)) continue;
    TypeVerdict candidate = {.type = i,
                             .similarity_ppm = JaccardPpm(types[i].contexts, unit.contexts)};
    candidate.matched_ppm = candidate.similarity_ppm;
    if (!IsRare(types[i])) {
      candidate.matched_ppm = JaccardPpm(types[i].contexts, counted.words);
    } else if (candidate.similarity_ppm < kBelievedPpm) {
      continue;
    }
    if (IsNearer(types, candidate, best)) best = candidate;
  }
  return best;
}

// The unit has a context of the type that only so many of the candidates have, or it alone.
inline bool HasContextOfFew(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                            uint32_t type, uint32_t one_in) {
  uint32_t candidates = 0;
  for (const wire::PlanType& other : types) candidates += IsCandidate(other, unit) ? 1 : 0;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    for (uint64_t left = types[type].contexts[i] & unit.contexts[i]; left != 0; left &= left - 1) {
      const uint64_t bit = left & -left;
      uint32_t having = 0;
      for (const wire::PlanType& other : types) {
        having += IsCandidate(other, unit) && (other.contexts[i] & bit) != 0 ? 1 : 0;
      }
      if (one_in * having <= std::max(candidates, one_in)) return true;
    }
  }
  return false;
}

// The unit has a context of the type that most others do not have.
inline bool HasDistinctiveContext(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                                  uint32_t type) {
  return HasContextOfFew(types, unit, type, 2);
}

// The unit did all that units of the type do, and something that hardly any other does.
inline bool DidAllOf(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                     uint32_t type) {
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    if ((types[type].contexts[i] & ~unit.contexts[i]) != 0) return false;
  }
  return HasContextOfFew(types, unit, type, 8);
}

// By all contexts, or more so by those that count.
inline bool IsAlike(const TypeVerdict& nearest, uint32_t min_similarity_ppm) {
  return nearest.similarity_ppm >= min_similarity_ppm ||
         nearest.matched_ppm >= std::max(kRecognisedPpm, min_similarity_ppm);
}

// Enough for a report to name the nearest type.
inline bool IsRecognised(std::span<const wire::PlanType> types, const UnitIdentity& unit,
                         const TypeVerdict& nearest, uint32_t min_similarity_ppm) {
  if (nearest.type == wire::kUnknown) return false;
  return nearest.similarity_ppm >= min_similarity_ppm ||
         (IsAlike(nearest, min_similarity_ppm) &&
          HasDistinctiveContext(types, unit, nearest.type)) ||
         DidAllOf(types, unit, nearest.type);
}

}  // namespace culprit::guard::runtime
