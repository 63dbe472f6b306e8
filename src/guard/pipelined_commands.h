// SPDX-License-Identifier: Apache-2.0
//
// FindPipelinedCommands: where a handler is cut into the commands that a client
// sent at once: the shallowest <function, depth> that is entered in nearly every
// handler with input, whose number follows the bytes read among handlers that do
// the same, and between whose entries the work is spread evenly (a loop over the
// words of one command is none: all work comes before or behind it). Repeats that
// input does not drive are never cut: that would hide what costs quadratic time.
// At most one context; none if nothing fits. Integers only.
#pragma once

#include <vector>

#include "guard/profile.h"
#include "guard/sub_units.h"

namespace culprit::guard {

// `levels`: handlers and tails that were found.
std::vector<Context> FindPipelinedCommands(const std::vector<SampledIteration>& iterations,
                                           const SubUnitLevels& levels);

}  // namespace culprit::guard
