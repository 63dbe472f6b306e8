// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/x86_guard_code.h"

#include "guard/runtime/x86_emit.h"

namespace culprit::guard::runtime::x86 {
namespace {

// The difference of any two depths can be said by lea.
constexpr int64_t kDepthBound = int64_t{1} << 30;
static_assert((kHitsToACall & (kHitsToACall - 1)) == 0 && kHitsToACall <= 128);

// mov to or from rcx, a member of the slot, which rdx points to.
void EmitMember(uint8_t opcode, uint32_t offset, CodeBuffer& out) {
  out.All(0x48, opcode, 0x8a);
  out.Word(offset);
}
constexpr uint8_t kLoad = 0x8b, kStore = 0x89;

// An instruction on a byte of the slot, with the bit's mask.
void EmitOnBit(uint8_t opcode, uint8_t modrm, uint32_t bit, const SlotLayout& layout,
               CodeBuffer& out) {
  out.All(opcode, modrm);
  out.Word(layout.contexts_offset + bit / 8);
  out.Byte(static_cast<uint8_t>(1u << bit % 8));
}

void EmitRestoreAll(CodeBuffer& out) {
  EmitRestoreFlags(out);
  out.All(kPopRax, kPopRdx, kPopRcx);
}

// As EmitGuardCall expects it: rcx alone is pushed, and is the slot.
void EmitSlotAgain(CodeBuffer& out) { out.All(0x48, 0x89, 0xd1, kPopRdx); }  // mov rcx, rdx; pop

}  // namespace

bool GuardCode::AllFitInline() const {
  if (hook_.context_count == 0 || hook_.context_count > kMaxInlineContexts ||
      layout_.hits_offset == 0 || layout_.hits_offset > INT32_MAX) {
    return false;
  }
  for (uint32_t i = 0; i < hook_.context_count; ++i) {
    const InlineContext& context = hook_.contexts[i];
    if (context.depth <= -kDepthBound || context.depth >= kDepthBound ||
        uint64_t{layout_.contexts_offset} + context.bit / 8 > INT32_MAX) {
      return false;
    }
    if (context.cut != 0 && (hook_.cut == 0 || !IsOffset(layout_.thread_offset))) return false;
  }
  return true;
}

bool GuardCode::EmitFront(CodeBuffer& out) {
  return AllFitInline() ? EmitInline(out) : EmitCalled(out);
}

// rcx is pushed, and is the slot.
void GuardCode::EmitArguments(CodeBuffer& out) const {
  EmitSave(out);
  out.All(0x48, 0x89, 0xcf);  // mov rdi, rcx
  EmitEntry(out);
  EmitConstant(0x48, 0xb9, hook_.argument, out);  // mov rcx, record
}

void GuardCode::EmitGuardCall(CodeBuffer& out) const {
  EmitArguments(out);
  EmitCall(hook_.function, out);
  EmitRestore(out);
}

// What the function needs besides is said by constants.
void GuardCode::EmitCut(uint64_t cut, CodeBuffer& out) const {
  EmitArguments(out);
  EmitConstant(0x49, 0xb8, cut, out);     // mov r8, cut
  out.All(0x64, 0x4c, 0x8b, 0x0c, 0x25);  // mov r9, fs:[offset]
  out.Word(static_cast<uint32_t>(layout_.thread_offset));
  EmitCall(hook_.cut, out);
  EmitRestore(out);
}

bool GuardCode::EmitCalled(CodeBuffer& out) {
  enter_ = out.here();
  if (!EmitSlot(layout_.slot_offset, out)) return false;
  const size_t skip = hook_.outside ? 0 : EmitIfZero(out);
  EmitGuardCall(out);
  const bool near = hook_.outside || Land(skip, out);
  out.Byte(kPopRcx);
  return near;
}

// rdx, rcx are pushed; rdx is the slot. Sets the bit, if it is not set yet.
void GuardCode::EmitMark(uint32_t bit, CodeBuffer& out) {
  out.Byte(kPushRax);
  EmitSaveFlags(out);
  EmitOnBit(0xf6, 0x82, bit, layout_, out);  // test byte [rdx + ], imm8
  to_again_[agains_++] = EmitJumpIfNotZero(out);
  EmitOnBit(0x80, 0x8a, bit, layout_, out);  // or byte [rdx + ], imm8
  EmitRestoreAll(out);
}

// Of an entry at the context's depth, where rcx is 0. `next`: where the search goes on, with that
// in rcx.
void GuardCode::EmitContext(uint32_t i, size_t next, CodeBuffer& out) {
  const InlineContext& context = hook_.contexts[i];
  if (context.return_address != 0) {
    out.Byte(kPushRax);
    EmitConstant(0x48, 0xb8, uint64_t{0} - context.return_address, out);  // mov rax, -address
    out.All(0x48, 0x8b, 0x4c, 0x24, 0x18);                                // mov rcx, [rsp + 24]
    out.All(0x48, 0x8d, 0x0c, 0x01, kPopRax);  // lea rcx, [rcx + rax]; pop rax
    const size_t same = EmitIfZero(out);
    out.All(0xb9, 0, 0, 0, 0);  // mov ecx, 0
    EmitJumpTo(next, out);
    Land(same, out);
  }
  if (context.cut != 0 && hook_.context_count == 1) {
    EmitSlotAgain(out);
    EmitCut(context.cut, out);
    out.Byte(kPopRcx);
    return;
  }
  if (context.cut != 0) {
    to_cut_[i] = EmitJump(out);
    return;
  }
  EmitMark(context.bit, out);
  if (i + 1 < hook_.context_count) to_end_[ends_++] = EmitJump(out);
}

bool GuardCode::EmitInline(CodeBuffer& out) {
  behind_ = true;
  // What jrcxz leads to is near only if it stands before it.
  const size_t no_slot = out.size();
  if (hook_.outside) {
    to_call_ = EmitJump(out);
  } else {
    out.Byte(kPopRcx);
    to_end_[ends_++] = EmitJump(out);
  }
  enter_ = out.here();
  if (!EmitSlot(layout_.slot_offset, out)) return false;
  const size_t test = EmitIfZero(out);
  const auto back = static_cast<uint8_t>(no_slot - (test + 1));
  out.Overwrite(test, &back, 1);
  if (!EmitDepth(hook_.contexts[0].depth, layout_.base_sp_offset, out)) return false;
  size_t fits[kMaxInlineContexts], next[kMaxInlineContexts];
  for (uint32_t i = 0; i < hook_.context_count; ++i) {
    if (i != 0) {
      out.All(0x48, 0x8d, 0x89);  // lea rcx, [rcx + ]
      out.Word(static_cast<uint32_t>(hook_.contexts[i].depth - hook_.contexts[i - 1].depth));
    }
    fits[i] = EmitIfZero(out);
    next[i] = out.size();
  }
  to_missed_ = EmitJump(out);
  // Of several contexts each has a jump here, since jrcxz reaches no further.
  const bool several = hook_.context_count > 1;
  size_t ways[kMaxInlineContexts];
  for (uint32_t i = 0; i < hook_.context_count; ++i) {
    if (!Land(fits[i], out)) return false;
    if (several) ways[i] = EmitJump(out);
  }
  for (uint32_t i = 0; i < hook_.context_count; ++i) {
    if (several) LandFar(ways[i], out);
    EmitContext(i, next[i], out);
  }
  return true;
}

// Entries without a context, and all but the first of those that have one.
void GuardCode::EmitCounting(size_t end, CodeBuffer& out) {
  LandFar(to_missed_, out);
  out.Byte(kPushRax);
  EmitSaveFlags(out);
  // Below three pushed registers. Where the stack is not as calls leave it the function looks.
  out.All(0x40, 0xf6, 0xc4, 0x08);  // test spl, 8
  const size_t odd = EmitJumpIfNotZero(out);
  for (uint32_t i = 0; i < agains_; ++i) LandFar(to_again_[i], out);
  EmitMember(kLoad, layout_.hits_offset, out);
  out.All(0x48, 0xff, 0xc1);                       // inc rcx
  out.All(0xf6, 0xc1, uint8_t{kHitsToACall - 1});  // test cl, imm8
  const size_t due = EmitJumpIfZero(out);
  EmitMember(kStore, layout_.hits_offset, out);
  EmitRestoreAll(out);
  EmitJumpTo(end, out);
  LandFar(odd, out);
  LandFar(due, out);
  EmitRestoreFlags(out);
  out.Byte(kPopRax);
  EmitSlotAgain(out);
  if (to_call_ != 0) LandFar(to_call_, out);
  EmitGuardCall(out);
  out.Byte(kPopRcx);
  EmitJumpTo(end, out);
}

void GuardCode::EmitBehind(size_t end, CodeBuffer& out) {
  if (!behind_) return;
  for (uint32_t i = 0; i < ends_; ++i) LandFar(to_end_[i], end, out);
  for (uint32_t i = 0; i < hook_.context_count; ++i) {
    if (to_cut_[i] == 0) continue;
    LandFar(to_cut_[i], out);
    EmitSlotAgain(out);
    EmitCut(hook_.contexts[i].cut, out);
    out.Byte(kPopRcx);
    EmitJumpTo(end, out);
  }
  EmitCounting(end, out);
}

}  // namespace culprit::guard::runtime::x86
