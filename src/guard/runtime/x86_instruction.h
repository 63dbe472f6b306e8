// SPDX-License-Identifier: Apache-2.0
//
// The length of an x86-64 instruction and as much of its meaning as moving it
// takes. Legacy prefixes, REX, the one-byte, 0F, 0F38 and 0F3A maps, VEX, EVEX
// and XOP; 3DNow! and what 64-bit mode does not have are refused. Pure
// functions on bytes, the same on every host. About 5 ns an instruction.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::guard::runtime::x86 {

enum class Flow : uint8_t {
  kNext,          // goes on behind itself
  kJump,          // jmp rel8, rel32
  kCondition,     // jcc rel8, rel32
  kCall,          // call rel32
  kLoop,          // loop, loope, loopne, jrcxz: rel8 only
  kIndirectJump,  // jmp r/m
  kIndirectCall,  // call r/m
  kEnd,           // ret, ud2, hlt, int3, iret
  kTransaction,   // xbegin rel32
};

struct Instruction {
  uint8_t length = 0;  // 0: refused
  Flow flow = Flow::kNext;
  uint8_t opcode = 0;        // the last opcode byte
  uint8_t modrm = 0;         // 0 if there is none
  uint8_t modrm_offset = 0;  // 0: there is none
  uint8_t displacement_offset = 0;
  bool rip_relative = false;  // a 4-byte displacement at displacement_offset
  bool nop = false;           // a nop of any length
  int64_t relative = 0;       // kJump, kCondition, kCall, kLoop: from the next instruction
};

// Reads at most 15 bytes and not beyond the end of `code`.
Instruction Decode(std::span<const uint8_t> code);

inline bool IsEndbr64(std::span<const uint8_t> code) {
  return code.size() >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e &&
         code[3] == 0xfa;
}

}  // namespace culprit::guard::runtime::x86
