// SPDX-License-Identifier: Apache-2.0
//
// How long the units of a loop are, by what their time went into and not by how many
// there are: most units of a server may be timers that find nothing to do.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"

namespace culprit::guard {

// By loop, the least length such that `ppm` of the calibrated time was spent in units
// that are at most as long; 0: not calibrated. (Lengths are by the ready event.)
std::vector<uint64_t> UnitLengthsByTime(const Profile& profile, uint64_t ppm);

}  // namespace culprit::guard
