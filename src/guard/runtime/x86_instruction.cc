// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/x86_instruction.h"

#include <cstring>

namespace culprit::guard::runtime::x86 {
namespace {

// What follows an opcode, a letter each (Intel SDM 2D, appendix A; 64-bit mode):
//   .  nothing             m  ModRM
//   b  imm8                z  imm16 or imm32 by operand size
//   M  ModRM imm8          Z  ModRM imm16/32
//   w  imm16               e  imm16 imm8 (enter)
//   v  imm16/32/64 (mov)   o  an address of 8 (4) bytes
//   f  F6, F7: ModRM, and an immediate in its first two forms
//   r  ModRM of two registers, whatever its mod says (mov cr)
//   -  refused, or handled before the table is asked
constexpr char kOneByte[257] =
    "mmmmbz--mmmmbz--"   // 0
    "mmmmbz--mmmmbz--"   // 1
    "mmmmbz--mmmmbz--"   // 2
    "mmmmbz--mmmmbz--"   // 3
    "----------------"   // 4: REX
    "................"   // 5
    "---m----zZbM...."   // 6
    "bbbbbbbbbbbbbbbb"   // 7
    "MZ-Mmmmmmmmmmmmm"   // 8
    "..........-....."   // 9
    "oooo....bz......"   // a
    "bbbbbbbbvvvvvvvv"   // b
    "MMw.--MZe.w..b-."   // c
    "mmmm---.mmmmmmmm"   // d
    "bbbbbbbbzz-b...."   // e
    "-.--..ff......mm";  // f
constexpr char kTwoByte[257] =
    "mmmm-.....-.-m.-"   // 0
    "mmmmmmmmmmmmmmmm"   // 1
    "rrrr----mmmmmmmm"   // 2
    "......-.--------"   // 3
    "mmmmmmmmmmmmmmmm"   // 4
    "mmmmmmmmmmmmmmmm"   // 5
    "mmmmmmmmmmmmmmmm"   // 6
    "MMMMmmm.mm--mmmm"   // 7
    "zzzzzzzzzzzzzzzz"   // 8
    "mmmmmmmmmmmmmmmm"   // 9
    "...mMm--...mMmmm"   // a
    "mmmmmmmmmmMmmmmm"   // b
    "mmMmMMMm........"   // c
    "mmmmmmmmmmmmmmmm"   // d
    "mmmmmmmmmmmmmmmm"   // e
    "mmmmmmmmmmmmmmmm";  // f

struct Prefixes {
  bool operand16 = false, address32 = false, repeat = false, repeat_not = false, wide = false;
  bool rex = false;
};

class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> code)
      : code_(code.size() > 15 ? code.first(15) : code) {}

  Instruction Run() {
    ReadPrefixes();
    ReadOpcode();
    if (bad_) return {};
    result_.length = static_cast<uint8_t>(at_);
    return result_;
  }

 private:
  uint8_t Peek() const { return at_ < code_.size() ? code_[at_] : 0; }
  uint8_t Take() {
    if (at_ >= code_.size()) {
      bad_ = true;
      return 0;
    }
    return code_[at_++];
  }
  void Skip(size_t bytes) {
    if (bytes > code_.size() - at_) {
      bad_ = true;
    } else {
      at_ += bytes;
    }
  }

  void ReadPrefixes();
  void ReadOpcode();
  void ReadVex(uint8_t first);
  void ReadEvex();
  void ReadXop();
  void ReadVectorOpcode(uint32_t map);
  void ReadModrm(bool registers_only);
  void ReadOperands(char form);
  void FinishOneByte();
  void FinishTwoByte();
  void SetRelative(Flow flow, uint32_t bytes);
  size_t FullImmediate() const { return prefixes_.operand16 && !prefixes_.wide ? 2 : 4; }

  std::span<const uint8_t> code_;
  size_t at_ = 0;
  bool bad_ = false;
  Prefixes prefixes_;
  Instruction result_;
};

void Decoder::ReadPrefixes() {
  for (;;) {
    switch (Peek()) {
      case 0x66:
        prefixes_.operand16 = true;
        break;
      case 0x67:
        prefixes_.address32 = true;
        break;
      case 0xf2:
        prefixes_.repeat_not = true;
        break;
      case 0xf3:
        prefixes_.repeat = true;
        break;
      case 0xf0:
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e:
      case 0x64:
      case 0x65:
        break;
      default:
        if ((Peek() & 0xf0) == 0x40 && at_ < code_.size()) {
          prefixes_.rex = true;
          prefixes_.wide = (Take() & 8) != 0;
        }
        return;
    }
    Take();
    if (bad_) return;
  }
}

void Decoder::ReadModrm(bool registers_only) {
  result_.modrm_offset = static_cast<uint8_t>(at_);
  const uint8_t modrm = result_.modrm = Take();
  const uint32_t mod = modrm >> 6, rm = modrm & 7;
  if (mod == 3 || registers_only) return;
  uint32_t displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  if (rm == 4) {
    const uint8_t sib = Take();
    if (mod == 0 && (sib & 7) == 5) displacement = 4;
  } else if (mod == 0 && rm == 5) {
    displacement = 4;
    result_.rip_relative = true;
  }
  result_.displacement_offset = static_cast<uint8_t>(at_);
  Skip(displacement);
}

void Decoder::ReadOperands(char form) {
  switch (form) {
    case '.':
      break;
    case 'm':
      ReadModrm(false);
      break;
    case 'r':
      ReadModrm(true);
      break;
    case 'b':
      Skip(1);
      break;
    case 'w':
      Skip(2);
      break;
    case 'e':
      Skip(3);
      break;
    case 'z':
      Skip(FullImmediate());
      break;
    case 'v':
      Skip(prefixes_.wide ? 8 : FullImmediate());
      break;
    case 'o':
      Skip(prefixes_.address32 ? 4 : 8);
      break;
    case 'M':
      ReadModrm(false);
      Skip(1);
      break;
    case 'Z':
      ReadModrm(false);
      Skip(FullImmediate());
      break;
    case 'f':
      ReadModrm(false);
      if ((result_.modrm >> 3 & 7) < 2) Skip(result_.opcode == 0xf6 ? 1 : FullImmediate());
      break;
    default:
      bad_ = true;
  }
}

void Decoder::SetRelative(Flow flow, uint32_t bytes) {
  // With an operand size prefix makers differ in what the instruction is; REX.W
  // settles it (calls of __tls_get_addr are padded so).
  if ((prefixes_.operand16 && !prefixes_.wide) || bad_) {
    bad_ = true;
    return;
  }
  result_.flow = flow;
  if (bytes == 1) {
    const uint8_t byte = code_[at_ - 1];
    result_.relative = byte < 0x80 ? byte : int64_t{byte} - 0x100;
  } else {
    int32_t relative = 0;
    std::memcpy(&relative, code_.data() + at_ - 4, sizeof(relative));
    result_.relative = relative;
  }
}

void Decoder::FinishOneByte() {
  const uint8_t op = result_.opcode;
  const uint32_t form = result_.modrm >> 3 & 7;
  if ((op & 0xf0) == 0x70) SetRelative(Flow::kCondition, 1);
  if (op >= 0xe0 && op <= 0xe3) SetRelative(Flow::kLoop, 1);
  if (op == 0xe8) SetRelative(Flow::kCall, 4);
  if (op == 0xe9) SetRelative(Flow::kJump, 4);
  if (op == 0xeb) SetRelative(Flow::kJump, 1);
  if (op == 0xc7 && result_.modrm == 0xf8) SetRelative(Flow::kTransaction, 4);
  if (op == 0xff && (form == 2 || form == 3)) result_.flow = Flow::kIndirectCall;
  if (op == 0xff && (form == 4 || form == 5)) result_.flow = Flow::kIndirectJump;
  if (op == 0xff && form == 7) bad_ = true;
  if (op == 0x8f && form != 0) bad_ = true;
  if (op == 0xc2 || op == 0xc3 || op == 0xca || op == 0xcb || op == 0xcc || op == 0xcf ||
      op == 0xf4) {
    result_.flow = Flow::kEnd;
  }
  // With F3 it is pause, with a REX prefix maybe xchg r8.
  result_.nop = op == 0x90 && !prefixes_.repeat && !prefixes_.rex;
}

void Decoder::FinishTwoByte() {
  const uint8_t op = result_.opcode;
  if ((op & 0xf0) == 0x80) SetRelative(Flow::kCondition, 4);
  if (op == 0x0b || op == 0xff || op == 0xb9) result_.flow = Flow::kEnd;  // ud2, ud0, ud1
  if (op == 0x05 || op == 0x07 || op == 0x34 || op == 0x35) result_.flow = Flow::kNext;
  // extrq and insertq have two immediates.
  if ((op == 0x78 || op == 0x79) && (prefixes_.operand16 || prefixes_.repeat_not)) bad_ = true;
  result_.nop = op == 0x1f && !prefixes_.repeat;
}

void Decoder::ReadVectorOpcode(uint32_t map) {
  result_.opcode = Take();
  const uint8_t op = result_.opcode;
  if (map == 1) {
    const bool immediate = (op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
    ReadOperands(op == 0x77 ? '.' : immediate ? 'M' : 'm');
  } else if (map == 2 || map == 5 || map == 6) {
    ReadOperands('m');
  } else {
    ReadOperands(map == 3 ? 'M' : '-');
  }
}

void Decoder::ReadVex(uint8_t first) {
  const uint8_t second = Take();
  uint32_t map = 1;
  if (first == 0xc4) {
    map = second & 31;
    Take();
  }
  ReadVectorOpcode(map);
  // Branches on mask registers, of a processor that was hardly sold.
  const bool branch = (result_.opcode & 0xf0) == 0x80 && map == 1;
  if (map > 3 || branch) bad_ = true;
}

void Decoder::ReadEvex() {
  const uint32_t map = Take() & 7;
  const uint8_t second = Take();
  Take();
  if ((second & 4) == 0) bad_ = true;  // a bit that is always set
  ReadVectorOpcode(map);
  if (result_.opcode == 0x77 && map == 1) bad_ = true;
}

// AMD's, in some cryptographic code: like VEX, with maps of its own.
void Decoder::ReadXop() {
  const uint32_t map = Take() & 31;
  Take();
  result_.opcode = Take();
  ReadModrm(false);
  if (map == 8) Skip(1);
  if (map == 10) Skip(4);
  if (map > 10) bad_ = true;
}

void Decoder::ReadOpcode() {
  const uint8_t first = result_.opcode = Take();
  if (first == 0x8f && (Peek() & 31) >= 8) {
    ReadXop();
    return;
  }
  if (first == 0xc4 || first == 0xc5 || first == 0x62) {
    if (prefixes_.rex || prefixes_.operand16 || prefixes_.repeat || prefixes_.repeat_not) {
      bad_ = true;
    } else if (first == 0x62) {
      ReadEvex();
    } else {
      ReadVex(first);
    }
    return;
  }
  if (first != 0x0f) {
    ReadOperands(kOneByte[first]);
    if (!bad_) FinishOneByte();
    return;
  }
  const uint8_t second = result_.opcode = Take();
  if (second == 0x38 || second == 0x3a) {
    result_.opcode = Take();
    ReadOperands(second == 0x38 ? 'm' : 'M');
    return;
  }
  ReadOperands(kTwoByte[second]);
  if (!bad_) FinishTwoByte();
}

}  // namespace

Instruction Decode(std::span<const uint8_t> code) { return Decoder(code).Run(); }

}  // namespace culprit::guard::runtime::x86
