// SPDX-License-Identifier: Apache-2.0
//
// The verdict: an analysis on one screen, at most 25 lines: what was analysed,
// where the time went, the first findings as sentences and what to do next.
// Text from traces is made safe for a terminal.
#pragma once

#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/findings.h"

namespace culprit::analyze {

inline constexpr size_t kVerdictLines = 25;

struct VerdictOptions {
  size_t width = 100;
  bool color = false;
};

std::string VerdictText(const Analysis& analysis, const std::vector<Finding>& findings,
                        const VerdictOptions& options);
// The same for machines.
std::string VerdictJson(const Analysis& analysis, const std::vector<Finding>& findings);

}  // namespace culprit::analyze
