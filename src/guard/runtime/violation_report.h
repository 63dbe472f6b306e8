// SPDX-License-Identifier: Apache-2.0
//
// A unit that takes too long, told to culprit through the ring, with the stack of
// the thread: once while it runs, if a guard is hit then, and at its end. At most
// max_reports_a_second of the plan (a burst of as many may come at once); the others are counted.
// When nobody listens, only counted.
//
// From the thread of the unit, at its end or at a guard inside it.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// Where in the program the report is made.
struct ReportPlace {
  uint64_t entry_sp = 0;        // of the patched function or detoured call
  uint64_t return_address = 0;  // of a guard's function; 0: a detoured call
  uint64_t entry = 0;           // the patched function; 0: the stack begins at its caller
};

// `violation` is complete but for thread and stack, in all of these.

// A unit that was too slow, at its end.
void ReportViolation(ThreadState& state, const LoadedPlan& plan, wire::Violation& violation,
                     const ReportPlace& place);
// One that is too slow already. False: not told; it is reported at its end.
bool ReportRunning(ThreadState& state, const LoadedPlan& plan, wire::Violation& violation,
                   const ReportPlace& place);
// The end of one that was told of, within its threshold or not.
void ReportEndOfRunning(ThreadState& state, wire::Violation& violation, const ReportPlace& place,
                        bool slow);

// The stack around a stack pointer of this thread, as last seen.
const AddressRange& StackOf(ThreadState& state, uint64_t sp);

// culprit's beat is younger than 5 s.
void ListenTo(const wire::Control* control);
bool DoesAnybodyListen(uint64_t now_ns);

}  // namespace culprit::guard::runtime
