// SPDX-License-Identifier: Apache-2.0
//
// Samples of units on their way to culprit: gathered by each thread for itself
// until a cell of the ring is full of them, or the thread is about to wait and has
// given none for a twentieth of a second: who knows how long it will wait. Written
// by their thread alone; those of a thread that is gone, by whoever finds it, and
// all of them by who ends the session.
#pragma once

#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

void AddSample(ThreadState& state, const wire::Sample& sample);
void FlushSamplesBeforeWait(ThreadState& state, uint64_t now);
void FlushSamples(ThreadState& state);

}  // namespace culprit::guard::runtime
