// SPDX-License-Identifier: Apache-2.0
//
// Trampolines of arm64 entries. One instruction is replaced by a branch: the
// first, or the one behind a landing pad. Flags are preserved; x16 and x17 are the
// only registers that change, and x18 is never touched. 8 bytes to
// kMaxTrampolineBytes; guards and detours begin with a line of the cache.
#pragma once

#include "guard/runtime/code_buffer.h"
#include "guard/runtime/trampoline.h"

namespace culprit::guard::runtime::arm64 {

EntryPatch WriteTrampoline(const EntrySite& site, const Hook& hook, const SlotLayout& layout,
                           CodeBuffer& out);

}  // namespace culprit::guard::runtime::arm64
