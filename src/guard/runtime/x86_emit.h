// SPDX-License-Identifier: Apache-2.0
//
// What the x86-64 trampolines are made of (x86_trampoline.h): pieces of machine code, and jumps
// whose target is filled in when it is reached. All of it keeps the flags, or saves them first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "guard/runtime/code_buffer.h"

namespace culprit::guard::runtime::x86 {

inline void EmitConstant(uint8_t rex, uint8_t opcode, uint64_t value, CodeBuffer& out) {
  out.All(rex, opcode);  // movabs
  out.Long(value);
}

inline void EmitSaveFlags(CodeBuffer& out) { out.All(0x9f, 0x0f, 0x90, 0xc0); }  // lahf; seto al
// add al, 127 sets the overflow flag if al was 1; sahf brings back the others.
inline void EmitRestoreFlags(CodeBuffer& out) { out.All(0x04, 0x7f, 0x9e); }

inline constexpr uint8_t kPushRax = 0x50, kPopRax = 0x58;
inline constexpr uint8_t kPushRcx = 0x51, kPopRcx = 0x59;
inline constexpr uint8_t kPushRdx = 0x52, kPopRdx = 0x5a;

// rax rdx rsi rdi r8 r9 r10 r11, flags, and eight bytes for the alignment: 80
// bytes on top of rcx, which the caller of this pushed.
inline constexpr uint8_t kSavedBytes = 88;
inline void EmitSave(CodeBuffer& out) {
  out.All(kPushRax, kPushRdx, 0x56, 0x57, 0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53);
  EmitSaveFlags(out);
  out.All(kPushRax, 0x48, 0x8d, 0x64, 0x24, 0xf8);  // push rax; lea rsp, [rsp - 8]
}
inline void EmitRestore(CodeBuffer& out) {
  out.All(0x48, 0x8d, 0x64, 0x24, 0x08, kPopRax);  // lea rsp, [rsp + 8]; pop rax
  EmitRestoreFlags(out);
  out.All(0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, 0x5f, 0x5e, kPopRdx, kPopRax);
}
// Behind EmitSave: the stack pointer as it was before rcx was pushed, and the word there.
inline void EmitEntry(CodeBuffer& out) {
  out.All(0x48, 0x8d, 0x74, 0x24, kSavedBytes);  // lea rsi, [rsp + 88]
  out.All(0x48, 0x8b, 0x54, 0x24, kSavedBytes);  // mov rdx, [rsp + 88]
}

inline void EmitCall(uint64_t function, CodeBuffer& out) {
  EmitConstant(0x48, 0xb8, function, out);  // mov rax, function
  out.All(0xff, 0xd0);                      // call rax
}

inline bool IsOffset(int64_t offset) { return offset == static_cast<int32_t>(offset); }

// push rcx; rcx = the word of the thread at that offset.
inline bool EmitSlot(int64_t offset, CodeBuffer& out) {
  if (!IsOffset(offset)) return false;
  out.All(kPushRcx, 0x64, 0x48, 0x8b, 0x0c, 0x25);  // mov rcx, fs:[offset]
  out.Word(static_cast<uint32_t>(offset));
  return true;
}

// Behind EmitSlot: rdx, pushed as well, is the slot, and rcx is 0 where the entry is at the depth:
// (entry sp - 8) - base_sp + depth, since a call leaves the stack pointer 8 bytes above a multiple
// of 16. not gives -base_sp - 1; it and lea change no flags.
inline bool EmitDepth(int32_t depth, uint32_t base_sp_offset, CodeBuffer& out) {
  constexpr int64_t kPushed = 16;  // rcx, rdx
  const int64_t constant = int64_t{depth} + kPushed - 8 + 1;
  if (!IsOffset(constant) || !IsOffset(base_sp_offset)) return false;
  out.All(kPushRdx, 0x48, 0x89, 0xca, 0x48, 0x8b, 0x8a);  // mov rdx, rcx; mov rcx, [rdx + ]
  out.Word(base_sp_offset);
  out.All(0x48, 0xf7, 0xd1, 0x48, 0x8d, 0x8c, 0x0c);  // not rcx; lea rcx, [rsp + rcx + ]
  out.Word(static_cast<uint32_t>(constant));
  return true;
}

// jrcxz, which changes no flags. Returns where its distance stands, to be filled in by Land.
inline size_t EmitIfZero(CodeBuffer& out) {
  out.All(0xe3, 0);
  return out.size() - 1;
}
inline bool Land(size_t at, CodeBuffer& out) {
  const size_t distance = out.size() - at - 1;
  const auto byte = static_cast<uint8_t>(distance);
  out.Overwrite(at, &byte, 1);
  return distance < 128;
}

// Returns where its distance stands, to be filled in by LandFar.
inline size_t EmitJump(CodeBuffer& out) {
  out.Byte(0xe9);
  out.Word(0);
  return out.size() - 4;
}
inline size_t EmitJumpIfNotZero(CodeBuffer& out) {
  out.All(0x0f, 0x85);
  out.Word(0);
  return out.size() - 4;
}
inline size_t EmitJumpIfZero(CodeBuffer& out) {
  out.All(0x0f, 0x84);
  out.Word(0);
  return out.size() - 4;
}
inline void LandFar(size_t at, size_t target, CodeBuffer& out) {
  const auto distance = static_cast<uint32_t>(target - (at + 4));
  out.Overwrite(at, &distance, sizeof(distance));
}
inline void LandFar(size_t at, CodeBuffer& out) { LandFar(at, out.size(), out); }
inline void EmitJumpTo(size_t target, CodeBuffer& out) { LandFar(EmitJump(out), target, out); }

}  // namespace culprit::guard::runtime::x86
