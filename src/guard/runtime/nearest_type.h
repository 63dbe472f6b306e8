// SPDX-License-Identifier: Apache-2.0
//
// The type of a plan that a unit's contexts are nearest to: by Jaccard similarity of
// the sets, among the types of its loop and kind, ties to the smallest threshold. A type
// that training hardly saw (PlanType::kRare) is taken only for units that are surely of
// it: it would draw those to it that do two things which it happens to do as well, such as
// a query and a commit.
//
// Pure; of the runtime and of culprit, which asks about units that still run.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// Units that are so much like their type are believed to be of it.
inline constexpr uint32_t kBelievedPpm = 900'000;

struct TypeVerdict {
  uint32_t type = wire::kUnknown;
  uint32_t similarity_ppm = 0;
};

struct UnitIdentity {
  uint32_t loop = 0;
  uint32_t kind = 0;
  const uint64_t* contexts = nullptr;  // kContextWords
};

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

// Whether a candidate is to be preferred to the best so far.
inline bool IsNearer(std::span<const wire::PlanType> types, const TypeVerdict& candidate,
                     const TypeVerdict& best) {
  if (best.type == wire::kUnknown || candidate.similarity_ppm != best.similarity_ppm) {
    return best.type == wire::kUnknown || candidate.similarity_ppm > best.similarity_ppm;
  }
  return types[candidate.type].threshold_ns < types[best.type].threshold_ns;
}

// Unknown: there is no type of its loop and kind.
inline TypeVerdict FindNearestType(std::span<const wire::PlanType> types,
                                   const UnitIdentity& unit) {
  TypeVerdict best;
  for (uint32_t i = 0; i < types.size(); ++i) {
    if (!IsCandidate(types[i], unit)) continue;
    const TypeVerdict candidate = {i, JaccardPpm(types[i].contexts, unit.contexts)};
    const bool rare = (types[i].flags & wire::PlanType::kRare) != 0;
    if (rare && candidate.similarity_ppm < kBelievedPpm) continue;
    if (IsNearer(types, candidate, best)) best = candidate;
  }
  return best;
}

}  // namespace culprit::guard::runtime
