// SPDX-License-Identifier: Apache-2.0
//
// The expressions of call frame information (DWARF 5 §2.5): the few operations
// that compilers and C libraries use to say where a frame or a register is, as
// in procedure linkage tables and signal frames. Any other operation, a load
// from memory that was not given, or an unknown register: no value. Without
// branches every operation is done once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace culprit::symbol {

struct CallFrameRegisters;
struct CallFrameMemory;

struct CallFrameOperation {
  uint8_t atom = 0;  // DW_OP_*
  uint64_t number = 0;
  uint64_t number2 = 0;
};
using CallFrameExpression = std::vector<CallFrameOperation>;

// `frame_address`: what DW_OP_call_frame_cfa yields.
std::optional<uint64_t> EvaluateCallFrame(const CallFrameExpression& expression,
                                          const CallFrameRegisters& registers,
                                          const CallFrameMemory& memory, uint64_t frame_address);

}  // namespace culprit::symbol
