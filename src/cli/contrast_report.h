// SPDX-License-Identifier: Apache-2.0
//
// What `culprit contrast` prints: the patterns of one scenario, or for several
// the tables 1 to 3 of 003 with the first patterns of each; JSON. Pure functions
// of what was found.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "causality/contrast.h"
#include "cli/causality_input.h"

namespace culprit::cli {

struct ContrastFacts {
  std::vector<causality::ContrastResult> results;  // most time in patterns first
  // Scenarios that could not be contrasted, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
};

std::string ContrastText(const CausalityInput& input, const ContrastFacts& facts,
                         const CausalityTextOptions& options);
// One scenario is an object with its patterns; several are an array of those,
// "contrasts".
std::string ContrastJson(const CausalityInput& input, const ContrastFacts& facts);

}  // namespace culprit::cli
