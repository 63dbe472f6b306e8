// SPDX-License-Identifier: Apache-2.0
//
// As much of the A64 instruction set as moving an instruction takes: which ones
// depend on their own address, where they lead, and an equivalent at another
// address. Pure functions on words, the same on every host.
//
// What is moved uses x16 and x17 as scratch: any call may clobber them (linker
// veneers do), so they are dead at a function entry.
#pragma once

#include <cstdint>

#include "guard/runtime/code_buffer.h"

namespace culprit::guard::runtime::arm64 {

// A landing pad that must stay the first instruction of an indirectly called
// function: bti, paciasp, pacibsp.
bool IsLandingPad(uint32_t instruction);
bool SignsReturnAddress(uint32_t instruction);  // paciasp, pacibsp

// The target of a direct branch (b, bl, b.cond, cbz, tbz); false: none.
bool BranchTarget(uint32_t instruction, uint64_t at, uint64_t& target);
bool IsCall(uint32_t instruction);  // bl

// Appends code to `out` that does at out's address what `instruction` does at
// `at`. False: it cannot be moved, or a target is out of reach.
bool Relocate(uint32_t instruction, uint64_t at, CodeBuffer& out);

// Appends: reg = value, in one to four instructions; no flags.
void EmitConstant(uint32_t reg, uint64_t value, CodeBuffer& out);
// Appends a branch; false: out of reach.
bool EmitBranch(uint64_t target, CodeBuffer& out);
// The word of a branch at `from` to `to`; 0: out of reach.
uint32_t BranchWord(uint64_t from, uint64_t to);

}  // namespace culprit::guard::runtime::arm64
