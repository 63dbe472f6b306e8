// SPDX-License-Identifier: Apache-2.0
//
// WalkStack: the walk of bpf/user_walk.h in the recorder: for threads that sleep when
// a recording ends and never passed the kernel's walker. The same rules, the same
// order, frame pointers where there is no rule. Pure: memory and rules come from
// the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "record/bpf/unwind_layout.h"
#include "record/unwind_cfi.h"

namespace culprit::record {

struct UnwindRegisters {
  uint64_t program_counter = 0;
  uint64_t stack_pointer = 0;
  uint64_t frame_pointer = 0;
  uint64_t link_register = 0;  // 0: there is none
};

struct UnwindSource {
  UnwindMachine machine = UnwindMachine::kArm64;
  // Of an address of the process; rule 0 (kCfaUnknown): frame pointers must do.
  std::function<UnwindRule(uint64_t address)> rule;
  // False if it cannot be read.
  std::function<bool(uint64_t address, void* to, size_t bytes)> read;
};

struct WalkedStack {
  std::vector<uint64_t> addresses;  // leaf first
  bool complete = false;            // down to the outermost frame
};

WalkedStack WalkStack(UnwindRegisters registers, const UnwindSource& source);

}  // namespace culprit::record
