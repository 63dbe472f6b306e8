// SPDX-License-Identifier: Apache-2.0
//
// Permutation test over instances: is a pattern's cost in one class of instances
// more than chance would give, if the classes were dealt out at random? The
// statistic is the pattern's cost in the class, standardized by its mean and
// deviation under all deals. p_single compares a pattern with itself, p_value with
// the largest statistic of all patterns in each deal (Westfall and Young's
// single-step maxT): the probability that any pattern looks this good by chance.
// It corrects for the number of patterns without assuming them independent.
//
// Deals come from a fixed seed and instances stand in canonical order, so the same
// evidence gives the same values. O(deals × nonzero costs).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace culprit::causality {

struct SignificanceOptions {
  uint32_t deals = 2000;  // 0: no test, all values are 1
  uint64_t seed = 1;
  bool two_sided = false;
  size_t jobs = 0;  // threads; 0: all hardware threads
};

// The cost of one pattern in one instance; instances without it are left out.
struct PatternCost {
  uint32_t instance = 0;
  int64_t cost_ns = 0;
};

struct Significance {
  double p_value = 1;
  double p_single = 1;
  double score = 0;  // the standardized statistic
};

// `in_class` by instance; costs of a pattern ascending by instance.
std::vector<Significance> TestPatterns(const std::vector<std::vector<PatternCost>>& patterns,
                                       const std::vector<bool>& in_class,
                                       const SignificanceOptions& options);

// For people.
std::string_view CorrectionText();

}  // namespace culprit::causality
