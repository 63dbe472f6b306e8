// SPDX-License-Identifier: Apache-2.0
//
// The hits of guards that need more than a bit set: boundaries, units behind
// their deadline, and the counting of the back-off. In the hitting thread, called
// with its vector registers saved.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_plan.h"

namespace culprit::guard::runtime {

struct RareHit {
  const GuardRecord* guard;
  const ContextRule* rule;  // nullptr: no context of the plan; the unit may be late all the same
  uint64_t sp;
  uint64_t return_address;
};

void HandleRareHit(void* hit);

}  // namespace culprit::guard::runtime
