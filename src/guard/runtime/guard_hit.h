// SPDX-License-Identifier: Apache-2.0
//
// What a guarded function's entry runs while its thread is in a unit: the context
// (function and depth, with the return address where the plan says so) sets its
// bit; boundaries cut the unit (unit_cut.h); a unit behind its deadline is looked at,
// by one in kHitsToACall of a thread's hits that are counted, which reads the clock. What a
// trampoline does by itself (Hook::contexts) does not come here.
// Compiled to save all that it touches (hook.h). Some 25 instructions.
//
// Every kChargeHits-th hit of a thread charges as many to the function that it
// falls on: a function with more than the plan's max_hits_a_second is marked, and
// unpatched at the next wait of any thread.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

inline constexpr uint64_t kChargeHits = 1024;

// `slot` is ThreadWords::unit, `record` a GuardRecord; null: outside of units (loop_turn.h).
void GuardHit(void* slot, uint64_t sp, uint64_t return_address, const void* record);

// The same for a context that is known to be the entry's, and to cut (a CutFunction).
void CutHit(void* slot, uint64_t sp, uint64_t return_address, const void* record, uint64_t cut,
            void* thread);

}  // namespace culprit::guard::runtime
