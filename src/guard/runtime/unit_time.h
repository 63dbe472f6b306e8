// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a unit went: wall time by ticks, of it run delay and CPU time
// by what the thread's counters gained since they were last read before it
// (thread_times.h). A tail comes in parts, between which handlers run: long parts
// are measured one by one; what the thread was without a CPU in the iteration and
// in none of these is taken for the short ones', as far as they can hold it. So a
// tail can seem faster than it was, never slower.
//
// All of it in the unit's own thread. Each call reads the counters, some 1 us.
#pragma once

#include <cstdint>

#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

// What the thread's counters gained since `begin`, within `wall_ns`.
UnitTime TimeSince(ThreadState& state, const ThreadTimes& begin, uint64_t wall_ns);

// A part of the tail that took so long is over, and measured.
void MeasureTailPart(ThreadState& state, uint64_t wall_ns);
// Of all the tail, whose parts took `wall_ns`; `measured`: those of them that were.
UnitTime TimeOfTail(ThreadState& state, const UnitTime& measured, uint64_t wall_ns);

// a + b, part by part.
UnitTime Joined(const UnitTime& a, const UnitTime& b);

// By the clock of the records; `near` was read not long before or after.
uint64_t NsAt(const ThreadTimes& near, uint64_t ticks);

}  // namespace culprit::guard::runtime
