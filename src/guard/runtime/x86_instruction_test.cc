// SPDX-License-Identifier: Apache-2.0
// The decoder beside Zydis: on whole binaries, and on random bytes.
#include "guard/runtime/x86_instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "guard/runtime/test_elf_image.h"
#if defined(CULPRIT_HAVE_ZYDIS)
#include <Zydis/Zydis.h>
#endif

namespace culprit::guard::runtime::TEST_FILE {
namespace {

x86::Instruction DecodeBytes(std::vector<uint8_t> bytes) { return x86::Decode(bytes); }

TEST(X86Instruction, LengthsAndFlowOfKnownInstructions) {
  EXPECT_EQ(DecodeBytes({0x55}).length, 1);
  EXPECT_EQ(DecodeBytes({0x48, 0x89, 0xe5}).length, 3);
  EXPECT_EQ(DecodeBytes({0xf3, 0x0f, 0x1e, 0xfa}).length, 4);
  EXPECT_EQ(DecodeBytes({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}).length, 10);
  EXPECT_TRUE(DecodeBytes({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}).nop);
  EXPECT_EQ(DecodeBytes({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}).length, 10);
  EXPECT_EQ(DecodeBytes({0xf6, 0xc1, 0x01}).length, 3);  // test cl, 1
  EXPECT_EQ(DecodeBytes({0xf6, 0xd1}).length, 2);        // not cl
  EXPECT_EQ(DecodeBytes({0xc5, 0xf8, 0x77}).length, 3);  // vzeroupper
  EXPECT_EQ(DecodeBytes({0x62, 0xf1, 0xfe, 0x28, 0x6f, 0x06}).length, 6);
  EXPECT_EQ(DecodeBytes({0x8f, 0xe8, 0x78, 0xc0, 0xc0, 1}).length, 6);  // vprotb
  const x86::Instruction jump = DecodeBytes({0xeb, 0xfe});
  EXPECT_EQ(jump.flow, x86::Flow::kJump);
  EXPECT_EQ(jump.relative, -2);
  EXPECT_EQ(DecodeBytes({0x66, 0x66, 0x48, 0xe8, 1, 0, 0, 0}).flow, x86::Flow::kCall);
  EXPECT_EQ(DecodeBytes({0xe3, 0x00}).flow, x86::Flow::kLoop);
  EXPECT_EQ(DecodeBytes({0xc3}).flow, x86::Flow::kEnd);
  EXPECT_EQ(DecodeBytes({0xff, 0xe0}).flow, x86::Flow::kIndirectJump);
  EXPECT_TRUE(DecodeBytes({0x48, 0x8d, 0x05, 1, 0, 0, 0}).rip_relative);
}

TEST(X86Instruction, WhatIsCutOffOrNotThereIsRefused) {
  EXPECT_EQ(DecodeBytes({}).length, 0);
  EXPECT_EQ(DecodeBytes({0x48}).length, 0);
  EXPECT_EQ(DecodeBytes({0xe8, 1, 2, 3}).length, 0);
  EXPECT_EQ(DecodeBytes({0x06}).length, 0);                    // push es
  EXPECT_EQ(DecodeBytes({0x66, 0xe9, 0, 0, 0, 0}).length, 0);  // means two things
  EXPECT_EQ(DecodeBytes({0x0f, 0x0f, 0xc0, 0x9e}).length, 0);  // 3DNow!
  EXPECT_EQ(DecodeBytes(std::vector<uint8_t>(20, 0x66)).length, 0);
}

#if defined(CULPRIT_HAVE_ZYDIS)

struct Zydis {
  Zydis() { ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }
  bool Decode(std::span<const uint8_t> code) {
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(
        &decoder, code.data(), std::min<size_t>(code.size(), 15), &instruction, operands));
  }
  bool IsRelativeBranch(int64_t& relative) const {
    for (int i = 0; i < instruction.operand_count_visible; ++i) {
      if (operands[i].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operands[i].imm.is_relative)
        continue;
      relative = operands[i].imm.value.s;
      return true;
    }
    return false;
  }
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool IsRelative(const x86::Instruction& instruction) {
  return instruction.flow == x86::Flow::kJump || instruction.flow == x86::Flow::kCondition ||
         instruction.flow == x86::Flow::kCall || instruction.flow == x86::Flow::kLoop ||
         instruction.flow == x86::Flow::kTransaction;
}

// Empty: they agree.
std::string Disagreement(const Zydis& zydis, const x86::Instruction& ours) {
  if (ours.length != zydis.instruction.length) {
    return "length " + std::to_string(ours.length) + ", not " +
           std::to_string(zydis.instruction.length);
  }
  int64_t relative = 0;
  const bool branches = zydis.IsRelativeBranch(relative);
  if (branches != IsRelative(ours) || (branches && relative != ours.relative)) return "branch";
  bool rip = false;
  for (int i = 0; i < zydis.instruction.operand_count; ++i) {
    rip |= zydis.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
           (zydis.operands[i].mem.base == ZYDIS_REGISTER_RIP ||
            zydis.operands[i].mem.base == ZYDIS_REGISTER_EIP);
  }
  if (rip != ours.rip_relative) return "rip-relative";
  if (rip && zydis.instruction.raw.disp.offset != ours.displacement_offset) return "displacement";
  return "";
}

std::string Hex(std::span<const uint8_t> code) {
  std::string text;
  char byte[4];
  for (size_t i = 0; i < std::min<size_t>(code.size(), 15); ++i) {
    std::snprintf(byte, sizeof(byte), "%02x ", code[i]);
    text += byte;
  }
  return text;
}

TEST(X86Instruction, WholeBinariesAreDecodedAsZydisDoes) {
  Zydis zydis;
  uint64_t total = 0;
  for (const std::string& path : TestBinaries()) {
    const TestElfImage image(path);
    MappedArray<FunctionStart> starts;
    if (!image.good() || !image.is_x86() ||
        ReadFunctionStarts(image.segments(), image.eh_frame_hdr(), starts) != StartsState::kRead) {
      continue;
    }
    uint64_t instructions = 0, refused = 0, wrong = 0;
    for (const FunctionStart& start : starts) {
      const auto code = image.Code(start.entry, start.size);
      for (size_t offset = 0; offset < code.size() && zydis.Decode(code.subspan(offset));) {
        const x86::Instruction ours = x86::Decode(code.subspan(offset));
        ++instructions;
        if (ours.length == 0) {
          ++refused;
        } else if (const std::string what = Disagreement(zydis, ours); !what.empty()) {
          if (++wrong < 10)
            ADD_FAILURE() << path << ": " << what << ": " << Hex(code.subspan(offset));
        }
        offset += zydis.instruction.length;
      }
    }
    EXPECT_EQ(wrong, 0u) << path;
    EXPECT_LE(refused * 100000, instructions) << path << ": " << refused;
    std::printf("  %s: %zu functions, %llu instructions, %llu refused\n", path.c_str(),
                starts.size(), static_cast<unsigned long long>(instructions),
                static_cast<unsigned long long>(refused));
    total += instructions;
  }
  if (total == 0) GTEST_SKIP() << "no x86-64 binaries here (package libc6-amd64-cross has some)";
}

TEST(X86Instruction, RandomBytesAreDecodedAsZydisDoesOrRefused) {
  Zydis zydis;
  std::mt19937_64 random(5);
  const uint8_t openers[] = {0x0f, 0x66, 0xf2, 0xf3, 0x48, 0x62, 0xc4, 0xc5, 0x67, 0xff, 0xf7};
  uint64_t both = 0, refused = 0;
  for (int round = 0; round < 2000000; ++round) {
    uint8_t code[15];
    for (uint8_t& byte : code) byte = static_cast<uint8_t>(random());
    if (round % 2 == 0) code[0] = openers[random() % sizeof(openers)];
    if (round % 8 == 0) code[1] = openers[random() % sizeof(openers)];
    if (!zydis.Decode(code)) continue;
    const x86::Instruction ours = x86::Decode(code);
    if (ours.length == 0) {
      ++refused;
      continue;
    }
    ++both;
    ASSERT_EQ(Disagreement(zydis, ours), "") << Hex(code);
  }
  EXPECT_GT(both, 1000000u);
  EXPECT_LT(refused, both / 20);
}

#endif  // CULPRIT_HAVE_ZYDIS

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
