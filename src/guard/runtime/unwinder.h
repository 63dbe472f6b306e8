// SPDX-License-Identifier: Apache-2.0
//
// The call stack of the running thread, from .eh_frame of the modules, by frame
// pointers where a module says nothing. Only the mapping that the stack pointer
// lies in is read; a damaged stack ends the walk. No memory, no C library: safe in signal handlers
// and at function entries. About 0.5 us a frame, and once per stack the reading
// of /proc/self/maps.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/registers.h"

namespace culprit::guard::runtime {

struct StackFrame {
  uint64_t pc;        // where it goes on; of the first, where it is
  uint64_t cfa;       // stack pointer before the call; 0: not known
  uint64_t function;  // where the code that pc lies in begins; 0: not known
};

// The mapping around a stack pointer. Empty: not found.
AddressRange StackAround(uint64_t sp);

// What is known of a frame when it was left.
struct FrameStep {
  uint64_t cfa = 0;       // 0: not known
  uint64_t function = 0;  // as in StackFrame
  bool was_signal = false;
};

// Steps to the caller. False: the stack ends here, or is not understood.
// `is_return`: pc is a return address.
bool StepToCaller(Registers& registers, const AddressRange& stack, bool is_return, FrameStep& step);

// Frames from `registers` outwards, at most `max`, and none outside of the first whose CFA is
// above `last_cfa`. `first_is_return`: its pc is a return address.
uint32_t Unwind(const Registers& registers, const AddressRange& stack, bool first_is_return,
                StackFrame* frames, uint32_t max, uint64_t last_cfa = UINT64_MAX);

// Steps outwards from this function over the runtime's own frames to the caller
// of the one whose CFA is `cfa`: where a detoured call was made. False: lost.
bool FindCaller(uint64_t cfa, const AddressRange& stack, Registers& registers);

// The same from a guard's hook: to the caller of the patched function, given what
// its trampoline knows.
bool FindHookedCaller(uint64_t entry_sp, uint64_t return_address, const AddressRange& stack,
                      Registers& registers);

}  // namespace culprit::guard::runtime
