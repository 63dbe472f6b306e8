// SPDX-License-Identifier: Apache-2.0
//
// The type of a unit that has not ended, by the contexts it has entered so far:
// the nearest (runtime/nearest_type.h), as the runtime would have it at the end. What it has not
// done yet cannot count, so this is a guess. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "guard/guarded_process.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

// PlanHeader::min_similarity_ppm; 0 if it is no plan.
uint32_t PlanMinSimilarityPpm(std::string_view plan);
// The types of a plan's bytes, in its order; empty if it is no plan.
std::vector<wire::PlanType> PlanTypes(std::string_view plan);

struct TypeGuess {
  uint32_t type = wire::kUnknown;
  uint32_t similarity_ppm = 0;
  uint64_t threshold_ns = 0;  // 0: not known
};
// Unknown, with the similarity of the nearest, if that is below the bound.
TypeGuess GuessType(const std::vector<wire::PlanType>& types, const OpenUnit& unit,
                    uint32_t min_similarity_ppm = 0);

}  // namespace culprit::guard
