// SPDX-License-Identifier: Apache-2.0
//
// Units of a thread: an iteration runs from a planned wait's return with ready
// events to the loop's next wait. Where the loop has handlers it is cut into
// sub-units at the plan's boundary contexts (handler, pipelined command), and
// what lies outside of them, before the first and behind the last, is the tail,
// one unit whose time is divided by the ready events.
//
// A unit that ends below the smallest threshold that it could have costs a
// comparison (unit_cut.h). Above it: run delay is taken off, the type inferred, and a
// violation reported, once per unit. A unit that began under one plan and ends
// under another is dropped.
//
// All of it in the unit's own thread; culprit reads the UnitSlot beside it.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/violation_report.h"

namespace culprit::guard::runtime {

// The wait at the head of a loop (loop_head.h) is entered with the stack pointer
// `sp` (of the call, as the log has it). False: nothing begins with its return.
bool EnterLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp,
                   uint64_t now);

// It returns with so many ready events (0: nothing begins).
void LeaveLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp,
                   uint32_t ready);

// A turn of the loop was entered (IsTurn of unit_cut.h).
void TurnLoop(ThreadState& state, const ReportPlace& place);

// The same in a thread that is in no unit: the loop's head would wait with that stack pointer.
void BeginAtTurn(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp);

// A boundary context was entered.
void CrossBoundary(ThreadState& state, const GuardRecord& guard, const ContextRule& rule,
                   const ReportPlace& place);

// A guard was hit behind the unit's deadline.
void PassDeadline(ThreadState& state, const ReportPlace& place);

// The thread is no longer in a unit; what it was in does not count.
void DropUnit(ThreadState& state);

}  // namespace culprit::guard::runtime
