// SPDX-License-Identifier: Apache-2.0
//
// Fixed: a share as an unsigned fixed-point number with 20 fractional bits,
// kOne = 2^20. All weights, costs and similarities are made of these with
// integer arithmetic only (divisions round down), so results do not depend on
// the compiler, the machine or the order of work. Sums of a pattern's weights
// are plain uint64_t in the same unit.
#pragma once

#include <cstdint>

namespace culprit::cluster {

using Fixed = uint32_t;
inline constexpr uint32_t kFixedBits = 20;
inline constexpr Fixed kOne = 1U << kFixedBits;

}  // namespace culprit::cluster
