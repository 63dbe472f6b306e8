// SPDX-License-Identifier: Apache-2.0
//
// Where the time of the instances went, twice: what their own threads did (ran,
// were ready, waited, and for what), and the same with every wait followed to
// what was behind it. Each list sums to the total exactly; what nothing in the
// traces explains is a share of its own. Shares of nothing are left out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/analysis.h"

namespace culprit::analyze {

struct TimeShare {
  std::string_view key;  // "running", "ready", "lock", "disk", "unattributed", …
  int64_t ns = 0;
};

std::vector<TimeShare> OwnShares(const Analysis& analysis);
std::vector<TimeShare> BehindShares(const Analysis& analysis);

}  // namespace culprit::analyze
