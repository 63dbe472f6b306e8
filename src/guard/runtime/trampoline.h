// SPDX-License-Identifier: Apache-2.0
//
// What an architecture's trampoline writer gets and gives: the entry to be
// hooked, and the bytes that lead from it to the trampoline. Pure: nothing of
// the process is touched, so the x86-64 writer runs and is tested on arm64 too.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/code_buffer.h"
#include "guard/runtime/hook.h"

namespace culprit::guard::runtime {

enum class PatchOutcome : uint32_t {
  kPatched = 0,
  kTooShort,        // fewer bytes than the jump needs
  kUnrelocatable,   // an instruction that cannot be moved
  kJumpTarget,      // the function jumps into the bytes to be replaced
  kLoopHead,        // its own loop comes back to the entry: the hook would run per iteration
  kFar,             // no free memory near enough
  kPlt,             // a stub of the linker
  kNotExecutable,   // no code of this process
  kReserved,        // the loader, the vDSO, the guard library itself
  kSpecial,         // cold part, signal frame
  kThreadsRunning,  // x86-64: cannot be done while other threads run; try again
  kNotWritable,     // this system lets code be neither written nor made executable
  kDetoured,        // a detour stands there, or the batch has the entry twice
  kStraddles,       // x86-64: in two cache lines, so it could not be taken back at once
  kNoMemory,
};
inline constexpr uint32_t kPatchOutcomes = 15;
const char* Name(PatchOutcome outcome);

struct EntrySite {
  uint64_t entry = 0;
  std::span<const uint8_t> code;     // the function
  std::span<const uint8_t> padding;  // what follows it up to the next function
  std::span<const uint64_t> jumps;   // ascending targets of other functions' jumps
  bool checked = false;  // `code` is its head only; jumps into it and padding were looked at before
};

struct SlotLayout {
  int64_t slot_offset = 0;  // of the thread's slot pointer from the thread pointer
  uint32_t base_sp_offset = 0;
  uint32_t contexts_offset = 0;
  uint32_t hits_offset = 0;   // 0: guards have no inline contexts
  int64_t thread_offset = 0;  // of what a CutFunction is given besides
};

struct EntryPatch {
  PatchOutcome outcome = PatchOutcome::kPatched;
  uint32_t offset = 0;  // of the replaced bytes from the entry
  uint32_t size = 0;    // of the jump: so many bytes are written
  uint8_t jump[8] = {};
  bool one_instruction = false;  // the jump replaces a single instruction
  uint64_t original = 0;         // kDetour: callable, does what the function did
};

inline constexpr uint32_t kMaxTrampolineBytes = 2048;

}  // namespace culprit::guard::runtime
