// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/arm64_trampoline.h"

#include <bit>
#include <cstring>

#include "guard/runtime/arm64_instruction.h"

namespace culprit::guard::runtime::arm64 {
namespace {

constexpr uint32_t kX0 = 0, kX1 = 1, kX3 = 3, kX4 = 4, kX16 = 16, kX17 = 17, kSp = 31;
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

// What an add and a load can say.
bool IsThreadOffset(int64_t offset) {
  return offset >= 0 && offset < int64_t{1} << 24 && offset % 8 == 0;
}
// x16 = the word there, from the thread pointer.
bool EmitThreadWord(int64_t offset, CodeBuffer& out) {
  if (!IsThreadOffset(offset)) return false;
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
// tbnz; its target has fewer bits than those of the others, but enough for a trampoline.
uint32_t TestBit(uint32_t bit) { return 0x37000000 | (bit % 64 >> 5) << 31 | (bit % 32) << 19; }

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

// A member of the slot, which x16 points to, in x17.
bool IsMember(uint32_t offset) { return offset % 8 == 0 && offset < 32768; }
void EmitMember(uint32_t instruction, uint32_t offset, CodeBuffer& out) {
  out.Word(instruction | offset / 8 << 10 | kX16 << 5 | kX17);
}
constexpr uint32_t kLoadMember = 0xf9400000, kStoreMember = 0xf9000000;

// x17 = 0 where the entry is at the depth: what it is less than that.
void EmitDepth(int32_t depth, const SlotLayout& layout, CodeBuffer& out) {
  EmitMember(kLoadMember, layout.base_sp_offset, out);
  out.Word(0xcb206000 | kX17 << 16 | kSp << 5 | kX17);  // sub x17, sp, x17
  EmitAdd(depth, out);
}
// x17 = 0 where the entry has that caller.
void EmitCaller(uint64_t return_address, CodeBuffer& out) {
  EmitConstant(kX17, return_address, out);
  out.Word(0xcb1e0231);  // sub x17, x17, x30
}

// `again`, unless null, becomes the test that leads elsewhere if the bit is set already.
void EmitMark(uint32_t bit, const SlotLayout& layout, size_t* again, CodeBuffer& out) {
  const uint32_t word_offset = layout.contexts_offset + bit / 64 * 8;
  EmitMember(kLoadMember, word_offset, out);
  if (again != nullptr) *again = EmitTest(TestBit(bit), kX17, out);
  // orr x17, x17, #1 << n: one set bit, rotated right by 64 - n.
  out.Word(0xb2400000 | (64 - bit % 64) % 64 << 16 | kX17 << 5 | kX17);
  EmitMember(kStoreMember, word_offset, out);
}

void LandJump(size_t at, CodeBuffer& out) {
  const uint32_t word = 0x14000000 | static_cast<uint32_t>((out.size() - at) / 4);  // b
  out.Overwrite(at, &word, sizeof(word));
}

// The difference of any two depths can be said by EmitAdd.
constexpr int64_t kDepthBound = int64_t{1} << 23;

bool FitsInline(const InlineContext& context, const SlotLayout& layout, bool signed_link) {
  return context.depth > -kDepthBound && context.depth <= kDepthBound &&
         IsMember(layout.hits_offset) && IsMember(layout.base_sp_offset) &&
         IsMember(layout.contexts_offset + context.bit / 64 * 8) &&
         (context.return_address == 0 || !signed_link);
}

bool AllFitInline(const Hook& hook, const SlotLayout& layout, bool signed_link) {
  if (hook.context_count == 0 || hook.context_count > kMaxInlineContexts ||
      layout.hits_offset == 0) {
    return false;
  }
  for (uint32_t i = 0; i < hook.context_count; ++i) {
    if (!FitsInline(hook.contexts[i], layout, signed_link)) return false;
    const bool cuts = hook.contexts[i].cut != 0;
    if (cuts && (hook.cut == 0 || !IsThreadOffset(layout.thread_offset))) return false;
  }
  return true;
}

// The way back: what was displaced, then the rest of the function.
struct WayBack {
  uint32_t displaced = 0;
  uint64_t at = 0;

  bool Emit(CodeBuffer& out) const {
    return Relocate(displaced, at, out) && EmitBranch(at + 4, out);
  }
  bool IsShort() const {
    uint8_t room[64];
    CodeBuffer out(room, at);
    return Relocate(displaced, at, out) && out.size() == 4;
  }
};

// What is filled in when the rest of a trampoline is written: tests and jumps to its end, and to
// what stands behind the end.
struct Ways {
  size_t skip = 0;       // a test; 0: none
  bool outside = false;  // it leads to the call behind the end
  size_t end[kMaxInlineContexts];
  uint32_t ends = 0;
  bool counts = false;                    // there is a part behind the end
  size_t missed_test = 0;                 // no context is the entry's: a test (cbnz x17)...
  size_t missed_other = 0;                // ...another...
  size_t missed = 0;                      // ...or a jump; 0: none
  size_t again[kMaxInlineContexts] = {};  // 0: it is none that is marked
  size_t cut[kMaxInlineContexts] = {};    // jumps; 0: it is none that cuts, or does so in place
  uint32_t contexts = 0;
};

void LandEnds(const Ways& ways, CodeBuffer& out) {
  if (ways.skip != 0 && !ways.outside) Land(ways.skip, kCbz, kX16, out);
  for (uint32_t i = 0; i < ways.ends; ++i) LandJump(ways.end[i], out);
}

void EmitJump(size_t to, CodeBuffer& out) {
  const auto bytes = static_cast<int64_t>(to) - static_cast<int64_t>(out.size());
  out.Word(0x14000000 | (static_cast<uint32_t>(bytes / 4) & 0x3ffffff));  // b
}

// Of several contexts: depths are compared one after the other, which needs few lines of the
// cache, and what is done at one that fits stands behind them, with a way back of its own.
void EmitSeveral(const Hook& hook, const SlotLayout& layout, const WayBack& back, CodeBuffer& out,
                 Ways& ways) {
  size_t fits[kMaxInlineContexts];
  size_t next[kMaxInlineContexts];
  EmitDepth(hook.contexts[0].depth, layout, out);
  for (uint32_t i = 0; i < hook.context_count; ++i) {
    if (i != 0) EmitAdd(int64_t{hook.contexts[i].depth} - hook.contexts[i - 1].depth, out);
    fits[i] = EmitTest(kCbz, kX17, out);
    next[i] = out.size();
  }
  ways.missed = out.size();
  out.Word(0);
  const bool copies = back.IsShort();
  for (uint32_t i = 0; i < hook.context_count; ++i) {
    const InlineContext& context = hook.contexts[i];
    Land(fits[i], kCbz, kX17, out);
    size_t elsewhere = 0;
    if (context.return_address != 0) {
      EmitCaller(context.return_address, out);
      elsewhere = EmitTest(kCbnz, kX17, out);
    }
    if (context.cut != 0) {
      ways.cut[i] = out.size();
      out.Word(0);
    } else {
      EmitMark(context.bit, layout, &ways.again[i], out);
      if (!copies || !back.Emit(out)) {
        ways.end[ways.ends++] = out.size();
        out.Word(0);
      }
    }
    if (elsewhere == 0) continue;
    Land(elsewhere, kCbnz, kX17, out);
    out.Word(0xaa1f03f1);  // mov x17, xzr: as it was
    EmitJump(next[i], out);
  }
}

void EmitGuardCall(const Hook& hook, bool signed_link, CodeBuffer& out) {
  EmitSave(out);
  EmitReturnAddress(signed_link, out);
  out.Word(0xaa1003e0);  // mov x0, x16
  EmitEntrySp(kX1, out);
  EmitConstant(kX3, hook.argument, out);
  EmitCall(hook.function, out);
  EmitRestore(out);
}

// x16 is the slot pointer; what the function needs besides is said by constants.
void EmitCut(const Hook& hook, uint64_t cut, const SlotLayout& layout, bool signed_link,
             CodeBuffer& out) {
  EmitSave(out);
  EmitReturnAddress(signed_link, out);
  out.Word(0xaa1003e0);  // mov x0, x16
  EmitThreadWord(layout.thread_offset, out);
  out.Word(0xaa1003e5);  // mov x5, x16
  EmitEntrySp(kX1, out);
  EmitConstant(kX3, hook.argument, out);
  EmitConstant(kX4, cut, out);
  EmitCall(hook.cut, out);
  EmitRestore(out);
}

// The first hit of a context in a unit sets its bit, and that is all: what it costs is how many
// lines of the cache it needs, and with one context this is one. All other hits are counted.
void EmitInline(const Hook& hook, const SlotLayout& layout, bool signed_link, const WayBack& back,
                CodeBuffer& out, Ways& ways) {
  ways.counts = true;
  ways.contexts = hook.context_count;
  if (hook.context_count > 1) return EmitSeveral(hook, layout, back, out, ways);
  const InlineContext& context = hook.contexts[0];
  EmitDepth(context.depth, layout, out);
  ways.missed_test = EmitTest(kCbnz, kX17, out);
  if (context.return_address != 0) {
    EmitCaller(context.return_address, out);
    ways.missed_other = EmitTest(kCbnz, kX17, out);
  }
  if (context.cut != 0) return EmitCut(hook, context.cut, layout, signed_link, out);
  EmitMark(context.bit, layout, &ways.again[0], out);
}

bool EmitGuard(const Hook& hook, const SlotLayout& layout, bool signed_link, const WayBack& back,
               CodeBuffer& out, Ways& ways) {
  if (!EmitThreadWord(layout.slot_offset, out)) return false;
  const bool in_place = AllFitInline(hook, layout, signed_link);
  if (in_place || !hook.outside) ways.skip = EmitTest(kCbz, kX16, out);
  if (in_place) {
    ways.outside = hook.outside;
    EmitInline(hook, layout, signed_link, back, out, ways);
  } else {
    EmitGuardCall(hook, signed_link, out);
  }
  return true;
}

// Behind the end, out of the lines that most hits need: most hits are counted, without a
// call; the record, the rules and the saved registers would be as many lines again.
void EmitCounting(const Hook& hook, const SlotLayout& layout, bool signed_link, const Ways& ways,
                  size_t end, CodeBuffer& out) {
  if (ways.missed_test != 0) Land(ways.missed_test, kCbnz, kX17, out);
  if (ways.missed_other != 0) Land(ways.missed_other, kCbnz, kX17, out);
  if (ways.missed != 0) LandJump(ways.missed, out);
  for (uint32_t i = 0; i < ways.contexts; ++i) {
    if (ways.again[i] != 0) Land(ways.again[i], TestBit(hook.contexts[i].bit), kX17, out);
  }
  EmitMember(kLoadMember, layout.hits_offset, out);
  EmitAdd(1, out);
  // Any of the low bits: it is none of those; over the other tests and the way to the function.
  static_assert((kHitsToACall & (kHitsToACall - 1)) == 0);
  constexpr auto kBits = static_cast<uint32_t>(std::countr_zero(kHitsToACall));
  for (uint32_t bit = 0; bit < kBits; ++bit) {
    out.Word(TestBit(bit) | (kBits - bit + 1) << 5 | kX17);  // tbnz x17, #bit
  }
  const size_t call = out.size();
  out.Word(0);
  EmitMember(kStoreMember, layout.hits_offset, out);
  EmitJump(end, out);
  LandJump(call, out);
  if (ways.outside) Land(ways.skip, kCbz, kX16, out);
  EmitGuardCall(hook, signed_link, out);
  EmitJump(end, out);
}

// What stands behind the end.
void EmitRest(const Hook& hook, const SlotLayout& layout, bool signed_link, const Ways& ways,
              size_t end, CodeBuffer& out) {
  if (!ways.counts) return;
  for (uint32_t i = 0; i < ways.contexts; ++i) {
    if (ways.cut[i] == 0) continue;
    LandJump(ways.cut[i], out);
    EmitCut(hook, hook.contexts[i].cut, layout, signed_link, out);
    EmitJump(end, out);
  }
  EmitCounting(hook, layout, signed_link, ways, end, out);
}

bool EmitOneContext(const Hook& hook, const SlotLayout& layout, CodeBuffer& out, Ways& ways) {
  const InlineContext context = {.depth = hook.depth, .bit = hook.bit};
  if (!FitsInline(context, layout, false) || !EmitThreadWord(layout.slot_offset, out)) return false;
  ways.skip = EmitTest(kCbz, kX16, out);
  EmitDepth(hook.depth, layout, out);
  const size_t deeper = EmitTest(kCbnz, kX17, out);
  EmitMark(hook.bit, layout, nullptr, out);
  Land(deeper, kCbnz, kX17, out);
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

bool EmitHook(const Hook& hook, const SlotLayout& layout, uint32_t pad, const WayBack& back,
              CodeBuffer& out, EntryPatch& patch, Ways& ways) {
  switch (hook.kind) {
    case HookKind::kTraining:
      EmitTraining(hook, SignsReturnAddress(pad), out);
      return true;
    case HookKind::kGuard:
      return EmitGuard(hook, layout, SignsReturnAddress(pad), back, out, ways);
    case HookKind::kOneContext:
      return EmitOneContext(hook, layout, out, ways);
    case HookKind::kDetour:
      EmitDetour(hook, pad, out, patch);
      return true;
    case HookKind::kNothing:
      return true;
  }
  return false;
}

// Trampolines of guards and calls are seldom in the near caches when they are needed.
void BeginLine(CodeBuffer& out) {
  while (out.here() % 64 != 0 && !out.full()) out.Word(0xd503201f);  // nop
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

  // In training every function has one: there room counts more.
  if (hook.kind == HookKind::kGuard || hook.kind == HookKind::kDetour) BeginLine(out);
  const uint64_t at = site.entry + patch.offset;
  const uint32_t jump = BranchWord(at, out.here());
  if (jump == 0) return Refused(PatchOutcome::kFar);
  std::memcpy(patch.jump, &jump, sizeof(jump));
  const WayBack back = {.displaced = WordAt(site.code, patch.offset), .at = at};
  Ways ways;
  if (!EmitHook(hook, layout, pad, back, out, patch, ways)) {
    return Refused(PatchOutcome::kUnrelocatable);
  }
  const size_t end = out.size();
  LandEnds(ways, out);
  if (!Relocate(back.displaced, at, out)) return Refused(PatchOutcome::kUnrelocatable);
  if (!EmitBranch(at + 4, out)) return Refused(PatchOutcome::kFar);
  EmitRest(hook, layout, SignsReturnAddress(pad), ways, end, out);
  return out.full() ? Refused(PatchOutcome::kNoMemory) : patch;
}

}  // namespace culprit::guard::runtime::arm64
