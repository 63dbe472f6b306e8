// SPDX-License-Identifier: Apache-2.0
//
// DropMisleadingContexts: takes away contexts of guards that make units look like
// another type. The nearest type is taken, and a rare type of a few units shows
// whatever these few happened to enter besides; units of a common type that enter
// the same besides are then nearer to the rare one. Greedily, the context that most
// wrong units have and their type has not, as long as more come out right. A guard
// without contexts goes too, unless it begins sub-units.
//
// Deterministic; some tens of Judge.
#pragma once

#include <cstdint>
#include <vector>

#include "guard/profile.h"
#include "guard/type_judgement.h"

namespace culprit::guard {

// `now`: of `guards` on the halves; returns that of what is left.
Judgement DropMisleadingContexts(const Profile& profile, uint32_t halves, Judgement now,
                                 std::vector<Guard>& guards);

}  // namespace culprit::guard
