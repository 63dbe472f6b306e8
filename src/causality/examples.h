// SPDX-License-Identifier: Apache-2.0
//
// Examples: the instances in which a pattern costs most, for people to look at.
// Passive data and one pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "causality/evidence.h"
#include "causality/significance.h"

namespace culprit::causality {

struct Example {
  std::string instance;  // "TRACE:INDEX"
  std::string trace;
  uint32_t index = 0;
  int64_t cost_ns = 0;  // of the pattern in it
  int64_t dur_ns = 0;   // of the instance
};

// Costliest first, ties by name; costs[i].instance is a position in `instances`.
std::vector<Example> CostliestExamples(const Evidence& evidence,
                                       const std::vector<uint32_t>& instances,
                                       const std::vector<PatternCost>& costs, size_t count);

}  // namespace culprit::causality
