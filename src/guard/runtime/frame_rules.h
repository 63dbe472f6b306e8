// SPDX-License-Identifier: Apache-2.0
//
// What .eh_frame says of one place in the code: how to compute the canonical
// frame address (CFA) and where the caller's registers lie. Found by binary
// search of .eh_frame_hdr, interpreted anew each time: some 300 ns.
//
// Reads only what lies in the module's mapped segments; a table that is damaged,
// or says what is not understood here (expressions), gives no rules. No memory,
// no C library; safe in signal handlers.
#pragma once

#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/registers.h"

namespace culprit::guard::runtime {

struct FrameRules {
  enum Kind : uint8_t { kSame = 0, kUndefined, kAtOffset, kIsOffset, kInRegister };
  struct Rule {
    Kind kind = kSame;
    int32_t offset = 0;  // from the CFA; kInRegister: the register
  };
  uint32_t cfa_register = 0;
  int64_t cfa_offset = 0;
  uint32_t return_register = 0;
  bool signal_frame = false;
  uint64_t function = 0;  // where the code begins that these rules are of
  Rule rules[Registers::kCount];
};

// `pc` lies within the instruction asked for. False: nothing is known.
bool FindFrameRules(const LoadedModule& module, uint64_t pc, FrameRules& rules);

}  // namespace culprit::guard::runtime
