// SPDX-License-Identifier: Apache-2.0
//
// Whether a wait call is the head of a loop, and of which. Where a call returns to
// does not tell: servers have one function that waits, for the client's next
// request, for a lock in the midst of one, and for the first packet of a client
// before there is a loop. The function that holds the loop must be on the stack,
// with the loop's base as its stack pointer at entry.
//
// The stack is walked when a thread waits at a place with a stack pointer for the
// first time, some microseconds; then it is remembered, and asking costs a few
// loads. Where it cannot be walked at all, the loop is believed. In the thread's own
// time, at a wait.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

inline uint64_t BaseOf(const SiteRule& site, uint64_t sp) {
  return (sp & ~uint64_t{15}) + static_cast<uint64_t>(int64_t{site.base_offset});
}

// `site`: the first rule of the call's return address; `sp` at entry of the call.
// nullptr: an ordinary wait of a unit, or of none.
const SiteRule* FindHead(ThreadState& state, const LoadedPlan& plan, const SiteRule& site,
                         uint64_t sp);

// The wait, which heads no loop, is one that the holder of the thread's loop makes itself
// or by what it calls, to be given work by others (wire::PlanSite::kParks). The thread
// is in a loop of the plan that may.
bool IsParking(ThreadState& state, const LoadedPlan& plan, uint64_t return_address, uint64_t sp);

}  // namespace culprit::guard::runtime
