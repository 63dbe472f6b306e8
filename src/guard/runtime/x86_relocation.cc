// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/x86_instruction.h"
#include "guard/runtime/x86_trampoline.h"

namespace culprit::guard::runtime::x86 {
namespace {

constexpr uint8_t kJumpRel32 = 0xe9;

// The four bytes that lead from behind themselves to `target`.
PatchOutcome EmitRelative(uint64_t target, CodeBuffer& out) {
  const auto distance = static_cast<int64_t>(target - (out.here() + 4));
  if (distance != static_cast<int32_t>(distance)) return PatchOutcome::kFar;
  out.Word(static_cast<uint32_t>(distance));
  return PatchOutcome::kPatched;
}

// A processor keeps return addresses to predict returns by, and a plain push would leave it one
// short: this return would be predicted wrongly, and with it all those of the callers. So the
// push is a call, of what follows, whose return address is exchanged in one piece. (A call of the
// very next instruction is known for what it is, and not kept.)
void EmitPushReturn(uint64_t value, CodeBuffer& out) {
  out.All(0xe8, 1, 0, 0, 0, 0xcc);  // call over an int3
  out.All(0x50, 0x48, 0xb8);        // push rax; mov rax, value
  out.Long(value);
  out.All(0x48, 0x89, 0x44, 0x24, 0x08, 0x58);  // mov [rsp + 8], rax; pop rax
}

PatchOutcome CopyRipRelative(const Instruction& instruction, std::span<const uint8_t> bytes,
                             uint64_t at, CodeBuffer& out) {
  int32_t displacement = 0;
  std::memcpy(&displacement, bytes.data() + instruction.displacement_offset, 4);
  const uint64_t target = at + instruction.length + static_cast<uint64_t>(int64_t{displacement});
  const auto moved = static_cast<int64_t>(target - (out.here() + instruction.length));
  if (moved != static_cast<int32_t>(moved)) return PatchOutcome::kFar;
  const auto value = static_cast<int32_t>(moved);
  const size_t start = out.size();
  out.Append(bytes.data(), instruction.length);
  out.Overwrite(start + instruction.displacement_offset, &value, 4);
  return PatchOutcome::kPatched;
}

// The return address is the original's, because no unwinder finds its way out of
// a trampoline; so the call becomes a push and a jump.
PatchOutcome MoveIndirectCall(const Instruction& instruction, std::span<const uint8_t> bytes,
                              uint64_t at, CodeBuffer& out) {
  const uint32_t mod = instruction.modrm >> 6, rm = instruction.modrm & 7;
  const bool plain_register = mod == 3 && rm != 4;
  if ((instruction.modrm >> 3 & 7) != 2 || (!plain_register && !instruction.rip_relative)) {
    return PatchOutcome::kUnrelocatable;  // far calls; operands that the push would move
  }
  EmitPushReturn(at + instruction.length, out);
  uint8_t jump[15];
  std::memcpy(jump, bytes.data(), instruction.length);
  jump[instruction.modrm_offset] = static_cast<uint8_t>((instruction.modrm & 0xc7) | 4 << 3);
  if (!instruction.rip_relative) {
    out.Append(jump, instruction.length);
    return PatchOutcome::kPatched;
  }
  return CopyRipRelative(instruction, {jump, instruction.length}, at, out);
}

}  // namespace

PatchOutcome Relocate(std::span<const uint8_t> bytes, uint64_t at, CodeBuffer& out) {
  const Instruction instruction = Decode(bytes);
  if (instruction.length == 0) return PatchOutcome::kUnrelocatable;
  const uint64_t target = at + instruction.length + static_cast<uint64_t>(instruction.relative);
  switch (instruction.flow) {
    case Flow::kLoop:
    case Flow::kTransaction:
      return PatchOutcome::kUnrelocatable;
    case Flow::kCall:
      EmitPushReturn(at + instruction.length, out);
      out.Byte(kJumpRel32);
      return EmitRelative(target, out);
    case Flow::kJump:
      out.Byte(kJumpRel32);
      return EmitRelative(target, out);
    case Flow::kCondition:
      out.All(0x0f, 0x80 | (instruction.opcode & 0x0f));
      return EmitRelative(target, out);
    case Flow::kIndirectCall:
      return MoveIndirectCall(instruction, bytes, at, out);
    case Flow::kIndirectJump:
    case Flow::kEnd:
    case Flow::kNext:
      break;
  }
  if (instruction.rip_relative) return CopyRipRelative(instruction, bytes, at, out);
  out.Append(bytes.data(), instruction.length);
  return PatchOutcome::kPatched;
}

}  // namespace culprit::guard::runtime::x86
