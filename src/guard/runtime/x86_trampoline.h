// SPDX-License-Identifier: Apache-2.0
//
// Trampolines of x86-64 entries. Five bytes are replaced by jmp rel32: from the
// first instruction, or from the one behind endbr64; a function too short for
// that may use the padding behind it. Everything is preserved, flags included
// (lahf and seto where something changes them). Works with a shadow stack except
// where a call was displaced. 10 to 160 bytes, a guard's up to kMaxTrampolineBytes; guards and
// detours begin with a line of the cache.
#pragma once

#include "guard/runtime/code_buffer.h"
#include "guard/runtime/trampoline.h"

namespace culprit::guard::runtime::x86 {

EntryPatch WriteTrampoline(const EntrySite& site, const Hook& hook, const SlotLayout& layout,
                           CodeBuffer& out);

// Appends code that does at out's address what the instruction `bytes` at `at`
// does. kPatched, kUnrelocatable or kFar.
PatchOutcome Relocate(std::span<const uint8_t> bytes, uint64_t at, CodeBuffer& out);

}  // namespace culprit::guard::runtime::x86
