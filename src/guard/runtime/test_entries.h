// SPDX-License-Identifier: Apache-2.0
//
// For tests only, in one file of a test binary: small functions in assembly, one
// for each way a function can begin, and a call that sets every register and
// reads every register back. Functions are told apart by their first
// instructions alone, so each is called before and after patching and must leave
// the same registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "guard/runtime/function_starts.h"

extern "C" {
struct TestEntry {
  const char* name;
  uint64_t begin;
  uint64_t end;
  uint64_t refused;  // 1: may not be patched
};
extern const TestEntry kTestEntries[];
extern const uint64_t kTestEntryCount;
// Calls `function` with the registers of `state` and stores them there after it.
// On the stack of the call lies the address it returns to (arm64).
void CallWithRegisters(uint64_t function, void* state);
}

namespace culprit::guard::runtime {

struct RegisterState {
  uint64_t general[32];  // arm64: x0-x30, NZCV; x86-64: rax ... r15 without rsp, flags at 16
  uint8_t vector[32][16];
};

inline std::span<const TestEntry> TestEntries() { return {kTestEntries, kTestEntryCount}; }

inline FunctionStart StartOf(const TestEntry& entry) {
  return {entry.begin, static_cast<uint32_t>(entry.end - entry.begin), 0};
}

// Registers that a call may change anyway, or that the test itself needs.
inline bool IsComparable(uint32_t general) {
#if defined(__aarch64__)
  return general != 16 && general != 17 && general != 30;
#else
  return general < 17;
#endif
}

}  // namespace culprit::guard::runtime

// ENTRY name, refused: opens a function; DONE closes it and appends to the table.
asm(R"(
.macro ENTRY name, refused=0
  .text
  .balign 64
  .type entry_\name, %function
entry_\name:
  .pushsection .rodata
  .Lname_\name: .asciz "\name"
  .popsection
  .pushsection .data.rel.ro, "aw"
  .quad .Lname_\name, entry_\name, end_\name, \refused
  .popsection
.endm
.macro DONE name
end_\name:
  .size entry_\name, . - entry_\name
.endm
.pushsection .data.rel.ro, "aw"
.balign 16
.globl kTestEntries
kTestEntries:
.popsection
)");

#if defined(__aarch64__)
#include "guard/runtime/test_entries_arm64.inc"
#else
#include "guard/runtime/test_entries_x86.inc"
#endif

asm(R"(
.pushsection .data.rel.ro, "aw"
.Lentries_end:
.globl kTestEntryCount
kTestEntryCount: .quad (.Lentries_end - kTestEntries) / 32
.popsection
.text
)");
