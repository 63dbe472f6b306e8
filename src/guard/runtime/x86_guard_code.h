// SPDX-License-Identifier: Apache-2.0
//
// The guard's part of an x86-64 trampoline. Contexts that are so simple that no record is needed
// (Hook::contexts) are looked for in the trampoline itself, without a call: the first hit of one
// in a unit sets its bit, the others are counted, and of those one in kHitsToACall calls the
// guard's function. All other guards call it at every hit.
//
//   enter:  no slot? -> end          depth i? -> the context's part -> end
//   end:    (what the caller writes: the displaced instructions, and the way back)
//   behind: hits that are counted, calls, cuts; each with a jump to `end`
//
// Flags are only saved where something changes them: comparing is done by lea, not and jrcxz.
#pragma once

#include "guard/runtime/code_buffer.h"
#include "guard/runtime/hook.h"
#include "guard/runtime/trampoline.h"

namespace culprit::guard::runtime::x86 {

class GuardCode {
 public:
  GuardCode(const Hook& hook, const SlotLayout& layout) : hook_(hook), layout_(layout) {}

  // All up to `end`. False: it cannot be said.
  bool EmitFront(CodeBuffer& out);
  // The trampoline is entered here.
  uint64_t enter() const { return enter_; }
  // `end`: where the buffer stood behind the front.
  void EmitBehind(size_t end, CodeBuffer& out);

 private:
  bool AllFitInline() const;
  bool EmitCalled(CodeBuffer& out);
  bool EmitInline(CodeBuffer& out);
  void EmitContext(uint32_t i, size_t next, CodeBuffer& out);
  void EmitMark(uint32_t bit, CodeBuffer& out);
  void EmitArguments(CodeBuffer& out) const;
  void EmitGuardCall(CodeBuffer& out) const;
  void EmitCut(uint64_t cut, CodeBuffer& out) const;
  void EmitCounting(size_t end, CodeBuffer& out);

  const Hook& hook_;
  const SlotLayout& layout_;
  uint64_t enter_ = 0;
  bool behind_ = false;
  // Jumps whose target comes later.
  size_t to_end_[kMaxInlineContexts + 1] = {};
  uint32_t ends_ = 0;
  size_t to_again_[kMaxInlineContexts] = {};  // the bit is set already
  uint32_t agains_ = 0;
  size_t to_cut_[kMaxInlineContexts] = {};  // 0: it is none that cuts
  size_t to_missed_ = 0;                    // no context is the entry's
  size_t to_call_ = 0;                      // there is no slot; 0: then nothing is done
};

}  // namespace culprit::guard::runtime::x86
