// SPDX-License-Identifier: Apache-2.0
//
// How long the calling thread was runnable without running (run delay), from its
// schedstat, and its CPU time. Costs 1 to 3 us, so it is read at the begin of a
// unit only when units took two milliseconds of CPU time since the last time (eight where
// they hardly wait for a CPU), and at the end of one that looks slow: a delay that fell between the
// last reading and the unit's begin is then taken for the unit's, which makes the unit look faster
// by at most that delay, never slower.
#pragma once

#include <cstdint>

#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

// After SealSystemCalls every time is zero: the program allows no system calls
// but those it knows.
void ReadThreadTimes(ThreadState& state, ThreadTimes& times);

void SealSystemCalls();
bool AreSystemCallsSealed();

}  // namespace culprit::guard::runtime
