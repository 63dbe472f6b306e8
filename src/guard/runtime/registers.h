// SPDX-License-Identifier: Apache-2.0
//
// The registers that unwinding needs, by their DWARF numbers, and how to take
// them at a place in the runtime's own code. Only those that a function preserves
// for its caller (and the stack pointer and program counter) have a meaning.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

struct Registers {
#if defined(__aarch64__)
  static constexpr uint32_t kCount = 32;
  static constexpr uint32_t kFramePointer = 29;
  static constexpr uint32_t kStackPointer = 31;
#else
  static constexpr uint32_t kCount = 17;
  static constexpr uint32_t kFramePointer = 6;
  static constexpr uint32_t kStackPointer = 7;
#endif
  uint64_t pc;
  uint64_t value[kCount];

  uint64_t& sp() { return value[kStackPointer]; }
  uint64_t sp() const { return value[kStackPointer]; }
};

// A return address without the bits of pointer authentication.
inline uint64_t WithoutAuthentication(uint64_t address) {
#if defined(__aarch64__)
  register uint64_t x30 asm("x30") = address;
  asm("hint #7" : "+r"(x30));  // xpaclri; does nothing on CPUs without it
  return x30;
#else
  return address;
#endif
}

// Here, in the function that contains this.
__attribute__((always_inline)) inline void TakeRegisters(Registers& registers) {
#if defined(__aarch64__)
  uint64_t* to = registers.value;
  asm volatile(
      "stp x19, x20, [%1, #152]\n\t"
      "stp x21, x22, [%1, #168]\n\t"
      "stp x23, x24, [%1, #184]\n\t"
      "stp x25, x26, [%1, #200]\n\t"
      "stp x27, x28, [%1, #216]\n\t"
      "stp x29, x30, [%1, #232]\n\t"
      "mov x9, sp\n\t"
      "str x9, [%1, #248]\n\t"
      "adr %0, ."
      : "=&r"(registers.pc)
      : "r"(to)
      : "x9", "memory");
#else
  uint64_t* to = registers.value;
  asm volatile(
      "movq %%rbx, 24(%1)\n\t"
      "movq %%rbp, 48(%1)\n\t"
      "movq %%rsp, 56(%1)\n\t"
      "movq %%r12, 96(%1)\n\t"
      "movq %%r13, 104(%1)\n\t"
      "movq %%r14, 112(%1)\n\t"
      "movq %%r15, 120(%1)\n\t"
      "leaq (%%rip), %0"
      : "=&r"(registers.pc)
      : "r"(to)
      : "memory");
#endif
}

}  // namespace culprit::guard::runtime
