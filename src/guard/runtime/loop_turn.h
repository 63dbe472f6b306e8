// SPDX-License-Identifier: Apache-2.0
//
// A loop that looks for work before it waits (wire::PlanSite::kTurns) may find some at once:
// the first request of a connection is often there before the process that is to serve it.
// So a thread that is in no unit finds its loop also where that turns: the turn's function
// was called by the function that holds the loop, from the depth that training saw. Then an
// iteration begins, as at any turn (TurnLoop of unit_tracker.h).
//
// Looking costs a step of the unwinder, some microsecond; of a call that is no turn it is
// remembered. At a guard, in the thread's own time.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

[[gnu::always_inline]] inline uint32_t NoTurnIndex(uint64_t return_address) {
  return (return_address >> 2 ^ return_address >> 8) % kNoTurns;
}

// The call is known to be none by this plan.
[[gnu::always_inline]] inline bool IsNoTurn(const ThreadState& state, const LoadedPlan& plan,
                                            uint64_t return_address) {
  return state.no_turns_of == plan.generation &&
         state.no_turns[NoTurnIndex(return_address)] == return_address;
}

// A guard of MayTurn was hit by a thread that is in no unit. `hit`: a RareHit without a rule.
void HandleHitOutside(void* hit);

}  // namespace culprit::guard::runtime
