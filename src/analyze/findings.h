// SPDX-License-Identifier: Apache-2.0
//
// Findings: the first clusters as sentences a person can act on, each with its
// status and the next command:
//   "In 12 % of BrowserTabCreate, Browser!RestoreSession waits 298 ms for a lock
//    at fv.sys!QueryFileTable; behind it [disk] 70 %, se.sys!ReadDecrypt 30 %;
//    5.6 s in 15 traces"
// Clusters whose time is inside another finding's, and ignored ones, are no
// findings of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/analysis.h"

namespace culprit::analyze {

struct Finding {
  uint32_t cluster = 0;  // place in mined.clusters
  std::string sentence;
  std::string command;
};

std::vector<Finding> MakeFindings(const Analysis& analysis, size_t most);

}  // namespace culprit::analyze
