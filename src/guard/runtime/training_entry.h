// SPDX-License-Identifier: Apache-2.0
//
// What every function entry runs during training: two words appended to the
// thread's log. Compiled to save all that it touches (hook.h); some ten
// instructions while the buffer has room.
#pragma once

#include <atomic>
#include <cstdint>

namespace culprit::guard::runtime {

extern std::atomic<bool> g_training;

// `word`: a kEnter record without its stack pointer.
void TrainingEntry(uint64_t word, uint64_t sp, uint64_t return_address);
// The same with the time of the entry; some 80 ns.
void TimedTrainingEntry(uint64_t word, uint64_t sp, uint64_t return_address);

}  // namespace culprit::guard::runtime
