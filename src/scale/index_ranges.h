// SPDX-License-Identifier: Apache-2.0
//
// Sets of task numbers as people and job schedulers write them: "0-3,7,9-12".
// Pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace culprit::scale {

// Empty for an empty set.
std::string IndexRanges(const std::set<uint64_t>& indexes);

}  // namespace culprit::scale
