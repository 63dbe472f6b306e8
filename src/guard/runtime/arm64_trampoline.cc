// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/arm64_trampoline.h"

#include <cstring>

#include "guard/runtime/arm64_instruction.h"

namespace culprit::guard::runtime::arm64 {
namespace {

constexpr uint32_t kX0 = 0, kX1 = 1, kX3 = 3, kX16 = 16, kX17 = 17, kSp = 31;
constexpr uint32_t kFrameBytes = 96;         // x29 x30, x0-x7, flags
constexpr uint32_t kStripLink = 0xd50320ff;  // xpaclri; a nop before Armv8.3

uint32_t WordAt(std::span<const uint8_t> code, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, code.data() + offset, sizeof(word));
  return word;
}

// A jump back to the patched place is the function's own loop (a recursive call
// is not). Data between instructions can be taken for a branch: then an entry is
// refused that need not be.
bool IsLoopHead(const EntrySite& site, uint32_t patch_offset) {
  for (size_t offset = 0; offset + 4 <= site.code.size(); offset += 4) {
    const uint32_t word = WordAt(site.code, offset);
    uint64_t target = 0;
    if (!BranchTarget(word, site.entry + offset, target) || IsCall(word)) continue;
    if (target >= site.entry && target <= site.entry + patch_offset) return true;
  }
  return false;
}

// .plt begins with stp x16, x30, [sp, #-16]!; its entries load x17 through x16.
bool IsLinkerStub(const EntrySite& site) {
  const uint32_t pad = IsLandingPad(WordAt(site.code, 0)) && site.code.size() >= 16 ? 4 : 0;
  if (WordAt(site.code, pad) == 0xa9bf7bf0) return true;
  if (site.code.size() < pad + 8u) return false;
  return (WordAt(site.code, pad) & 0x9f00001f) == 0x90000010 &&
         (WordAt(site.code, pad + 4) & 0xffc003ff) == 0xf9400211;
}

// x16 = the thread's slot pointer. False: the offset is out of what an add and a
// load can say.
bool EmitSlot(int64_t offset, CodeBuffer& out) {
  if (offset < 0 || offset >= int64_t{1} << 24 || offset % 8 != 0) return false;
  const auto high = static_cast<uint32_t>(offset >> 12);
  const auto low = static_cast<uint32_t>(offset & 0xfff);
  out.Word(0xd53bd050);                                                 // mrs x16, tpidr_el0
  if (high != 0) out.Word(0x91400000 | high << 10 | kX16 << 5 | kX16);  // add x16, x16, #, lsl 12
  out.Word(0xf9400000 | low / 8 << 10 | kX16 << 5 | kX16);              // ldr x16, [x16, #]
  return true;
}

// cbz or cbnz on a register, its target filled in by Land.
size_t EmitTest(uint32_t compare, uint32_t reg, CodeBuffer& out) {
  const size_t at = out.size();
  out.Word(compare | reg);
  return at;
}
void Land(size_t at, uint32_t compare, uint32_t reg, CodeBuffer& out) {
  const uint32_t word = compare | static_cast<uint32_t>((out.size() - at) / 4) << 5 | reg;
  out.Overwrite(at, &word, sizeof(word));
}
constexpr uint32_t kCbz = 0xb4000000, kCbnz = 0xb5000000;

void EmitPair(uint32_t instruction, uint32_t a, uint32_t b, uint32_t offset, CodeBuffer& out) {
  out.Word(instruction | offset / 8 << 15 | b << 10 | kSp << 5 | a);
}
constexpr uint32_t kStorePair = 0xa9000000, kLoadPair = 0xa9400000;

void EmitCall(uint64_t function, CodeBuffer& out) {
  EmitConstant(kX17, function, out);
  out.Word(0xd63f0000 | kX17 << 5);  // blr x17
}

void EmitSave(CodeBuffer& out) {
  out.Word(0xa9ba7bfd);  // stp x29, x30, [sp, #-96]!
  out.Word(0x910003fd);  // mov x29, sp
  for (uint32_t reg = 0; reg < 8; reg += 2) {
    EmitPair(kStorePair, reg, reg + 1, 16 + reg * 8, out);
  }
  out.Word(0xd53b4211);  // mrs x17, nzcv
  out.Word(0xf9002bf1);  // str x17, [sp, #80]
}
void EmitRestore(CodeBuffer& out) {
  out.Word(0xf9402bf1);  // ldr x17, [sp, #80]
  out.Word(0xd51b4211);  // msr nzcv, x17
  for (uint32_t reg = 0; reg < 8; reg += 2) {
    EmitPair(kLoadPair, reg, reg + 1, 16 + reg * 8, out);
  }
  out.Word(0xa8c67bfd);  // ldp x29, x30, [sp], #96
}
void EmitEntrySp(uint32_t reg, CodeBuffer& out) {
  out.Word(0x91000000 | kFrameBytes << 10 | kSp << 5 | reg);  // add reg, sp, #96
}

void EmitReturnAddress(bool signed_link, CodeBuffer& out) {
  if (signed_link) out.Word(kStripLink);
  out.Word(0xaa1e03e2);  // mov x2, x30
}

void EmitTraining(const Hook& hook, bool signed_link, CodeBuffer& out) {
  EmitSave(out);
  EmitReturnAddress(signed_link, out);
  EmitEntrySp(kX1, out);
  EmitConstant(kX0, hook.argument, out);
  EmitCall(hook.function, out);
  EmitRestore(out);
}

bool EmitGuard(const Hook& hook, const SlotLayout& layout, bool signed_link, CodeBuffer& out) {
  if (!EmitSlot(layout.slot_offset, out)) return false;
  const size_t skip = EmitTest(kCbz, kX16, out);
  EmitSave(out);
  EmitReturnAddress(signed_link, out);
  out.Word(0xaa1003e0);  // mov x0, x16
  EmitEntrySp(kX1, out);
  EmitConstant(kX3, hook.argument, out);
  EmitCall(hook.function, out);
  EmitRestore(out);
  Land(skip, kCbz, kX16, out);
  return true;
}

// add or sub x17, x17, #value in at most two instructions.
bool EmitAdd(int64_t value, CodeBuffer& out) {
  const uint32_t op = value < 0 ? 0xd1000000 : 0x91000000;
  const auto size = static_cast<uint64_t>(value < 0 ? -value : value);
  if (size >= uint64_t{1} << 24) return false;
  const auto low = static_cast<uint32_t>(size & 0xfff), high = static_cast<uint32_t>(size >> 12);
  if (low != 0) out.Word(op | low << 10 | kX17 << 5 | kX17);
  if (high != 0) out.Word(op | 1u << 22 | high << 10 | kX17 << 5 | kX17);
  return true;
}

bool EmitOneContext(const Hook& hook, const SlotLayout& layout, CodeBuffer& out) {
  const uint32_t word_offset = layout.contexts_offset + hook.bit / 64 * 8;
  if (layout.base_sp_offset % 8 != 0 || layout.base_sp_offset >= 32768 || word_offset % 8 != 0 ||
      word_offset >= 32768 || !EmitSlot(layout.slot_offset, out)) {
    return false;
  }
  const size_t no_slot = EmitTest(kCbz, kX16, out);
  out.Word(0xf9400000 | layout.base_sp_offset / 8 << 10 | kX16 << 5 | kX17);  // ldr x17, [x16, #]
  out.Word(0xcb206000 | kX17 << 16 | kSp << 5 | kX17);                        // sub x17, sp, x17
  if (!EmitAdd(hook.depth, out)) return false;
  const size_t elsewhere = EmitTest(kCbnz, kX17, out);
  out.Word(0xf9400000 | word_offset / 8 << 10 | kX16 << 5 | kX17);  // ldr x17, [x16, #]
  // orr x17, x17, #1 << n: one set bit, rotated right by 64 - n.
  out.Word(0xb2400000 | (64 - hook.bit % 64) % 64 << 16 | kX17 << 5 | kX17);
  out.Word(0xf9000000 | word_offset / 8 << 10 | kX16 << 5 | kX17);  // str x17, [x16, #]
  Land(no_slot, kCbz, kX16, out);
  Land(elsewhere, kCbnz, kX17, out);
  return true;
}

// The way to the replacement, then the callable original: what was displaced
// (with its landing pad again, since it is called through a pointer) and the rest.
void EmitDetour(const Hook& hook, uint32_t pad, CodeBuffer& out, EntryPatch& patch) {
  // The link register was signed by the landing pad; the replacement wants it plain.
  if (pad == 0xd503233f) out.Word(0xd50323bf);  // autiasp
  if (pad == 0xd503237f) out.Word(0xd50323ff);  // autibsp
  EmitConstant(kX16, hook.function, out);
  out.Word(0xd61f0000 | kX16 << 5);  // br x16
  patch.original = out.here();
  out.Word(pad != 0 ? pad : 0xd503245f);  // bti c
}

bool EmitHook(const Hook& hook, const SlotLayout& layout, uint32_t pad, CodeBuffer& out,
              EntryPatch& patch) {
  switch (hook.kind) {
    case HookKind::kTraining:
      EmitTraining(hook, SignsReturnAddress(pad), out);
      return true;
    case HookKind::kGuard:
      return EmitGuard(hook, layout, SignsReturnAddress(pad), out);
    case HookKind::kOneContext:
      return EmitOneContext(hook, layout, out);
    case HookKind::kDetour:
      EmitDetour(hook, pad, out, patch);
      return true;
    case HookKind::kNothing:
      return true;
  }
  return false;
}

EntryPatch Refused(PatchOutcome outcome) {
  EntryPatch patch;
  patch.outcome = outcome;
  return patch;
}

}  // namespace

EntryPatch WriteTrampoline(const EntrySite& site, const Hook& hook, const SlotLayout& layout,
                           CodeBuffer& out) {
  if (site.entry % 4 != 0 || site.code.size() < 4) return Refused(PatchOutcome::kTooShort);
  const uint32_t first = WordAt(site.code, 0);
  const uint32_t pad = IsLandingPad(first) ? first : 0;
  EntryPatch patch;
  patch.offset = pad != 0 ? 4 : 0;
  patch.size = 4;
  patch.one_instruction = true;
  if (site.code.size() < patch.offset + 4) return Refused(PatchOutcome::kTooShort);
  if (IsLinkerStub(site)) return Refused(PatchOutcome::kPlt);
  if (!site.checked && IsLoopHead(site, patch.offset)) {
    return Refused(PatchOutcome::kLoopHead);
  }

  const uint64_t at = site.entry + patch.offset;
  const uint32_t jump = BranchWord(at, out.here());
  if (jump == 0) return Refused(PatchOutcome::kFar);
  std::memcpy(patch.jump, &jump, sizeof(jump));
  if (!EmitHook(hook, layout, pad, out, patch) ||
      !Relocate(WordAt(site.code, patch.offset), at, out)) {
    return Refused(PatchOutcome::kUnrelocatable);
  }
  if (!EmitBranch(at + 4, out)) return Refused(PatchOutcome::kFar);
  return out.full() ? Refused(PatchOutcome::kNoMemory) : patch;
}

}  // namespace culprit::guard::runtime::arm64
