// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/arm64_instruction.h"

namespace culprit::guard::runtime::arm64 {
namespace {

constexpr uint32_t kLink = 30, kScratch = 17;

int64_t SignExtend(uint64_t value, uint32_t bits) {
  return static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

// Instruction classes by their fixed bits (Arm ARM, C4.1).
bool IsPcRelativeAddress(uint32_t i) { return (i & 0x1f000000) == 0x10000000; }  // adr, adrp
bool IsBranch(uint32_t i) { return (i & 0x7c000000) == 0x14000000; }             // b, bl
bool IsConditional(uint32_t i) { return (i & 0xff000000) == 0x54000000; }        // b.cond, bc.cond
bool IsCompareBranch(uint32_t i) { return (i & 0x7e000000) == 0x34000000; }      // cbz, cbnz
bool IsTestBranch(uint32_t i) { return (i & 0x7e000000) == 0x36000000; }         // tbz, tbnz
bool IsLiteralLoad(uint32_t i) { return (i & 0x3b000000) == 0x18000000; }

uint64_t Imm19Target(uint32_t i, uint64_t at) {
  return at + static_cast<uint64_t>(SignExtend(i >> 5 & 0x7ffff, 19)) * 4;
}
uint64_t Imm14Target(uint32_t i, uint64_t at) {
  return at + static_cast<uint64_t>(SignExtend(i >> 5 & 0x3fff, 14)) * 4;
}

void MoveAddress(uint32_t i, uint64_t at, CodeBuffer& out) {
  const uint64_t imm =
      static_cast<uint64_t>(SignExtend((i >> 5 & 0x7ffff) << 2 | (i >> 29 & 3), 21));
  const bool pages = (i >> 31) != 0;
  const uint64_t value = pages ? (at & ~uint64_t{0xfff}) + (imm << 12) : at + imm;
  // Register 31 is the zero register here: the instruction does nothing.
  if ((i & 31) != 31) EmitConstant(i & 31, value, out);
}

// The condition jumps over a jump: its own reach is too short for a trampoline.
bool MoveConditional(uint32_t i, uint32_t imm_mask, uint64_t target, CodeBuffer& out) {
  out.Word((i & ~(imm_mask << 5)) | 2u << 5);
  out.Word(0x14000002);  // b over the next
  return EmitBranch(target, out);
}

bool MoveLiteralLoad(uint32_t i, uint64_t at, CodeBuffer& out) {
  const uint32_t opc = i >> 30, target = i & 31;
  const bool vector = (i >> 26 & 1) != 0;
  uint32_t load = 0;  // with an unsigned offset of 0 from a register
  if (vector) {
    if (opc == 3) return false;  // unallocated
    load = opc == 0 ? 0xbd400000 : opc == 1 ? 0xfd400000 : 0x3dc00000;
  } else {
    load = opc == 0 ? 0xb9400000 : opc == 1 ? 0xf9400000 : opc == 2 ? 0xb9800000 : 0xf9800000;
  }
  EmitConstant(kScratch, Imm19Target(i, at), out);
  out.Word(load | kScratch << 5 | target);
  return true;
}

// The return address is the original's, because no unwinder finds its way out of
// a trampoline. x16: from there a jump may land on "bti c".
void MoveIndirectCall(uint32_t i, uint64_t at, CodeBuffer& out) {
  out.Word(0xaa0003f0 | (i >> 5 & 31) << 16);  // mov x16, xN
  EmitConstant(kLink, at + 4, out);
  out.Word(0xd61f0200);  // br x16
}

}  // namespace

bool IsLandingPad(uint32_t i) {
  return (i & 0xffffff3f) == 0xd503241f || SignsReturnAddress(i);  // bti {c, j, jc}
}

bool SignsReturnAddress(uint32_t i) { return i == 0xd503233f || i == 0xd503237f; }

bool BranchTarget(uint32_t i, uint64_t at, uint64_t& target) {
  if (IsBranch(i)) {
    target = at + static_cast<uint64_t>(SignExtend(i & 0x3ffffff, 26)) * 4;
  } else if (IsConditional(i) || IsCompareBranch(i)) {
    target = Imm19Target(i, at);
  } else if (IsTestBranch(i)) {
    target = Imm14Target(i, at);
  } else {
    return false;
  }
  return true;
}

bool IsCall(uint32_t i) { return (i & 0xfc000000) == 0x94000000; }

void EmitConstant(uint32_t reg, uint64_t value, CodeBuffer& out) {
  bool first = true;
  for (uint32_t part = 0; part < 4; ++part) {
    const auto bits = static_cast<uint32_t>(value >> 16 * part & 0xffff);
    if (bits == 0 && !(first && part == 3)) continue;
    out.Word((first ? 0xd2800000 : 0xf2800000) | part << 21 | bits << 5 | reg);  // movz, movk
    first = false;
  }
}

uint32_t BranchWord(uint64_t from, uint64_t to) {
  const auto distance = static_cast<int64_t>(to - from);
  if (distance % 4 != 0 || distance < -(int64_t{1} << 27) || distance >= int64_t{1} << 27) return 0;
  return 0x14000000 | (static_cast<uint32_t>(distance >> 2) & 0x3ffffff);
}

bool EmitBranch(uint64_t target, CodeBuffer& out) {
  const uint32_t word = BranchWord(out.here(), target);
  if (word == 0) return false;
  out.Word(word);
  return true;
}

bool Relocate(uint32_t i, uint64_t at, CodeBuffer& out) {
  uint64_t target = 0;
  if (IsPcRelativeAddress(i)) {
    MoveAddress(i, at, out);
    return true;
  }
  if (IsLiteralLoad(i)) return MoveLiteralLoad(i, at, out);
  if (!BranchTarget(i, at, target)) {
    if ((i & 0xfffffc1f) == 0xd63f0000) {
      MoveIndirectCall(i, at, out);
      return true;
    }
    out.Word(i);
    return (i & 0xfefff000) != 0xd63f0000;  // blraa and its like
  }
  if (IsCall(i)) EmitConstant(kLink, at + 4, out);
  if (IsBranch(i)) return EmitBranch(target, out);
  return MoveConditional(i, IsTestBranch(i) ? 0x3fff : 0x7ffff, target, out);
}

}  // namespace culprit::guard::runtime::arm64
