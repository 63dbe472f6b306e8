// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/x86_trampoline.h"

#include <algorithm>

#include "guard/runtime/x86_emit.h"
#include "guard/runtime/x86_guard_code.h"
#include "guard/runtime/x86_instruction.h"

namespace culprit::guard::runtime::x86 {
namespace {

constexpr uint32_t kJumpBytes = 5;

EntryPatch Refused(PatchOutcome outcome) {
  EntryPatch patch;
  patch.outcome = outcome;
  return patch;
}

bool IsLinkerStub(std::span<const uint8_t> code) {
  if (code.size() >= 2 && code[0] == 0xf2) code = code.subspan(1);  // bnd
  // push GOT[1] opens .plt; the others jump through the GOT.
  return code.size() >= 2 && code[0] == 0xff && (code[1] == 0x35 || code[1] == 0x25);
}

// Do the function's own jumps come into what will be replaced?
PatchOutcome CheckJumps(const EntrySite& site, uint32_t patch_offset) {
  const uint64_t at = site.entry + patch_offset;
  for (size_t offset = 0; offset < site.code.size();) {
    const Instruction instruction = Decode(site.code.subspan(offset));
    if (instruction.length == 0) return PatchOutcome::kUnrelocatable;
    offset += instruction.length;
    if (instruction.flow != Flow::kJump && instruction.flow != Flow::kCondition &&
        instruction.flow != Flow::kLoop && instruction.flow != Flow::kTransaction) {
      continue;
    }
    const uint64_t target = site.entry + offset + static_cast<uint64_t>(instruction.relative);
    if (target >= site.entry && target <= at) return PatchOutcome::kLoopHead;
    if (target > at && target < at + kJumpBytes) return PatchOutcome::kJumpTarget;
  }
  const uint64_t* jump =
      std::lower_bound(site.jumps.data(), site.jumps.data() + site.jumps.size(), site.entry);
  const bool comes_in = jump != site.jumps.data() + site.jumps.size() && *jump < at + kJumpBytes;
  return comes_in ? PatchOutcome::kJumpTarget : PatchOutcome::kPatched;
}

// Padding is never executed, so it need not be moved; but it must be padding.
bool CoversPadding(std::span<const uint8_t> padding, size_t bytes) {
  for (size_t offset = 0; offset < bytes;) {
    const Instruction instruction = Decode(padding.subspan(offset));
    const bool filler = instruction.length != 0 && (instruction.nop || instruction.opcode == 0xcc);
    if (!filler) return false;
    offset += instruction.length;
  }
  return true;
}

// Moves the instructions under the jump. `ends`: the last of them does not go on.
PatchOutcome MoveWindow(const EntrySite& site, EntryPatch& patch, CodeBuffer& out) {
  size_t moved = 0;
  bool ends = false;
  uint32_t instructions = 0;
  const auto code = site.code.subspan(patch.offset);
  while (moved < kJumpBytes && !ends && moved < code.size()) {
    const Instruction instruction = Decode(code.subspan(moved));
    if (instruction.length == 0) return PatchOutcome::kUnrelocatable;
    // A return address inside the replaced bytes would be returned to.
    if (instruction.flow == Flow::kIndirectCall && moved + instruction.length < kJumpBytes) {
      return PatchOutcome::kUnrelocatable;
    }
    const PatchOutcome outcome =
        Relocate(code.subspan(moved, instruction.length), site.entry + patch.offset + moved, out);
    if (outcome != PatchOutcome::kPatched) return outcome;
    ends = instruction.flow == Flow::kJump || instruction.flow == Flow::kIndirectJump ||
           instruction.flow == Flow::kEnd;
    moved += instruction.length;
    ++instructions;
  }
  patch.one_instruction = instructions == 1 && moved >= kJumpBytes;
  if (moved < kJumpBytes) {
    const bool fits = ends && moved == code.size() &&
                      (site.checked || CoversPadding(site.padding, kJumpBytes - moved));
    if (!fits) return PatchOutcome::kTooShort;
  }
  if (ends) return PatchOutcome::kPatched;
  const auto distance =
      static_cast<int64_t>(site.entry + patch.offset + moved - (out.here() + kJumpBytes));
  if (distance != static_cast<int32_t>(distance)) return PatchOutcome::kFar;
  out.Byte(0xe9);
  out.Word(static_cast<uint32_t>(distance));
  return PatchOutcome::kPatched;
}

void EmitTraining(const Hook& hook, CodeBuffer& out) {
  out.Byte(kPushRcx);
  EmitSave(out);
  EmitEntry(out);
  EmitConstant(0x48, 0xbf, hook.argument, out);  // mov rdi, id
  EmitCall(hook.function, out);
  EmitRestore(out);
  out.Byte(kPopRcx);
}

bool EmitOneContext(const Hook& hook, const SlotLayout& layout, CodeBuffer& out) {
  const uint64_t byte_offset = uint64_t{layout.contexts_offset} + hook.bit / 8;
  if (byte_offset > INT32_MAX || !EmitSlot(layout.slot_offset, out)) return false;
  const size_t no_slot = EmitIfZero(out);
  if (!EmitDepth(hook.depth, layout.base_sp_offset, out)) return false;
  out.All(0xe3, 0x02, 0xeb, 0);  // jrcxz over the next; jmp to the end
  const size_t elsewhere = out.size() - 1;
  out.Byte(0x50);  // push rax
  EmitSaveFlags(out);
  out.All(0x80, 0x8a);  // or byte [rdx + ], imm8
  out.Word(static_cast<uint32_t>(byte_offset));
  out.Byte(static_cast<uint8_t>(1u << hook.bit % 8));
  EmitRestoreFlags(out);
  out.Byte(0x58);  // pop rax
  const bool near = Land(elsewhere, out);
  out.Byte(0x5a);  // pop rdx
  const bool also_near = Land(no_slot, out);
  out.Byte(kPopRcx);
  return near && also_near;
}

// The way to the replacement, then the callable original.
void EmitDetour(const Hook& hook, CodeBuffer& out, EntryPatch& patch) {
  out.All(0x3e, 0xff, 0x25, 0, 0, 0, 0);  // notrack jmp [rip + 0]
  out.Long(hook.function);
  patch.original = out.here();
  out.All(0xf3, 0x0f, 0x1e, 0xfa);  // endbr64
}

// All but a guard's part, which is a GuardCode.
bool EmitHook(const Hook& hook, const SlotLayout& layout, CodeBuffer& out, EntryPatch& patch) {
  switch (hook.kind) {
    case HookKind::kTraining:
      EmitTraining(hook, out);
      return true;
    case HookKind::kGuard:
      return false;
    case HookKind::kOneContext:
      return EmitOneContext(hook, layout, out);
    case HookKind::kDetour:
      EmitDetour(hook, out, patch);
      return true;
    case HookKind::kNothing:
      return true;
  }
  return false;
}

// Trampolines of guards and calls are seldom in the near caches when they are needed.
void BeginLine(CodeBuffer& out) {
  while (out.here() % 64 != 0 && !out.full()) out.Byte(0x90);  // nop
}

}  // namespace

EntryPatch WriteTrampoline(const EntrySite& site, const Hook& hook, const SlotLayout& layout,
                           CodeBuffer& out) {
  EntryPatch patch;
  patch.offset = IsEndbr64(site.code) ? 4 : 0;
  patch.size = kJumpBytes;
  if (site.code.size() <= patch.offset) return Refused(PatchOutcome::kTooShort);
  if (IsLinkerStub(site.code.subspan(patch.offset))) return Refused(PatchOutcome::kPlt);
  const PatchOutcome jumps = site.checked ? PatchOutcome::kPatched : CheckJumps(site, patch.offset);
  if (jumps != PatchOutcome::kPatched) return Refused(jumps);

  const uint64_t at = site.entry + patch.offset;
  if (at / 64 != (at + kJumpBytes - 1) / 64) return Refused(PatchOutcome::kStraddles);
  // In training every function has one: there room counts more.
  const bool guards = hook.kind == HookKind::kGuard;
  if (guards || hook.kind == HookKind::kDetour) BeginLine(out);
  const uint64_t begin = out.here();
  GuardCode guard(hook, layout);
  if (!(guards ? guard.EmitFront(out) : EmitHook(hook, layout, out, patch))) {
    return Refused(PatchOutcome::kUnrelocatable);
  }
  const auto distance = static_cast<int64_t>((guards ? guard.enter() : begin) - (at + kJumpBytes));
  if (distance != static_cast<int32_t>(distance)) return Refused(PatchOutcome::kFar);
  const auto relative = static_cast<int32_t>(distance);
  patch.jump[0] = 0xe9;
  std::memcpy(patch.jump + 1, &relative, sizeof(relative));
  const size_t end = out.size();
  const PatchOutcome moved = MoveWindow(site, patch, out);
  if (moved != PatchOutcome::kPatched) return Refused(moved);
  if (guards) guard.EmitBehind(end, out);
  return out.full() ? Refused(PatchOutcome::kNoMemory) : patch;
}

}  // namespace culprit::guard::runtime::x86
