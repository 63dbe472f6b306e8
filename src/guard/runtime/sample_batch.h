// SPDX-License-Identifier: Apache-2.0
//
// Samples of units on their way to culprit: gathered by each thread for itself
// until a cell of the ring is full of them, or they are old. Written by their
// thread alone; those of a thread that is gone, by whoever finds it.
#pragma once

#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

void AddSample(ThreadState& state, const wire::Sample& sample);
// If the oldest waits for longer than a tenth of a second.
void FlushOldSamples(ThreadState& state, uint64_t now_ns);
void FlushSamples(ThreadState& state);

}  // namespace culprit::guard::runtime
