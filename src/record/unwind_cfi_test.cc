// SPDX-License-Identifier: Apache-2.0
//
// Instructions byte by byte; unwind_table_test.cc holds the whole against libdw.
#include "record/unwind_cfi.h"

#include <gtest/gtest.h>

#include <string>

namespace culprit::record::TEST_FILE {
namespace {

using namespace std::string_literals;

constexpr uint64_t kAddress = 0x10000;

std::string U32(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

std::string Entry(const std::string& body) {
  return U32(static_cast<uint32_t>(body.size())) + body;
}

// A section with one function of 0x40 bytes at 0x8000.
std::string SectionOf(const std::string& cie_instructions, const std::string& instructions,
                      UnwindMachine machine, const std::string& letters = "zR") {
  const char return_register = machine == UnwindMachine::kArm64 ? '\x1e' : '\x10';
  const char code_align = machine == UnwindMachine::kArm64 ? '\x04' : '\x01';
  std::string cie = U32(0) + "\x01"s + letters + "\0"s + code_align + "\x78"s + return_register;
  cie += "\x01\x03"s + cie_instructions;  // one byte of augmentation: absolute, 4 bytes
  std::string section = Entry(cie);
  section += Entry(U32(static_cast<uint32_t>(section.size()) + 4) + U32(0x8000) + U32(0x40) +
                   "\0"s + instructions);
  return section + U32(0);
}

std::vector<CfiRow> RowsOf(const std::string& section, UnwindMachine machine, uint64_t bad = 0) {
  std::vector<CfiRow> rows;
  EXPECT_EQ(ReadCfi({.bytes = section, .address = kAddress, .machine = machine},
                    [&](const CfiFunction& function) {
                      EXPECT_EQ(function.start, 0x8000u);
                      EXPECT_EQ(function.end, 0x8040u);
                      rows = function.rows;
                    }),
            bad);
  return rows;
}

const std::string kX86Start = "\x0c\x07\x08\x90\x01"s;  // CFA rsp + 8, return address at - 8

UnwindRule X86Rule(uint8_t cfa, int32_t offset, uint8_t extra = 0) {
  return {.cfa = cfa,
          .return_place = kPlaceCfa,
          .frame_place = kPlaceSame,
          .extra = extra,
          .cfa_offset = offset,
          .return_offset = -8};
}

TEST(UnwindCfi, PushingAndMovingTheFramePointer) {
  // advance 1, CFA + 16, rbp at - 16; advance 3, CFA by rbp; advance 40, CFA rsp + 8
  const std::string section = SectionOf(
      kX86Start, "\x41\x0e\x10\x86\x02\x43\x0d\x06\x68\x0c\x07\x08"s, UnwindMachine::kX86_64);
  const std::vector<CfiRow> rows = RowsOf(section, UnwindMachine::kX86_64);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].rule, X86Rule(kCfaStack, 8));
  UnwindRule pushed = X86Rule(kCfaStack, 16);
  pushed.frame_place = kPlaceCfa;
  pushed.frame_offset = -16;
  EXPECT_EQ(rows[1].address, 0x8001u);
  EXPECT_EQ(rows[1].rule, pushed);
  pushed.cfa = kCfaFrame;
  EXPECT_EQ(rows[2].address, 0x8004u);
  EXPECT_EQ(rows[2].rule, pushed);
  EXPECT_EQ(rows[3].address, 0x802cu);
}

TEST(UnwindCfi, ExpressionsOfLinkersAndCompilers) {
  struct Case {
    std::string expression;
    UnwindRule rule;
  };
  const Case cases[] = {{"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"s, X86Rule(kCfaPlt, 8, 11)},
                        {"\x76\x78\x06"s, X86Rule(kCfaFrameDeref, -8)},
                        {"\x77\xd8\x00\x06\x23\x08"s, X86Rule(kCfaStackDeref, 88, 8)},
                        {"\x76\x10"s, X86Rule(kCfaFrame, 16)},
                        {"\x70\x10"s, {}},          // by rax
                        {"\x77\x08\x06\x06"s, {}},  // twice
                        {"\x77\x08\x06\x23"s, {}},  // cut short
                        {"\x77\x08\x80\x00\x3f\x1a"s, {}}};
  for (const Case& c : cases) {
    const std::string section =
        SectionOf(kX86Start, "\x0f"s + static_cast<char>(c.expression.size()) + c.expression,
                  UnwindMachine::kX86_64);
    const std::vector<CfiRow> rows = RowsOf(section, UnwindMachine::kX86_64);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].rule, c.rule) << c.expression.size();
  }
}

TEST(UnwindCfi, StatesAreRememberedAndRestored) {
  // CFA sp + 32 with x29, x30 saved; remembered, undone for the epilogue, restored.
  const std::string section =
      SectionOf("\x0c\x1f\x00"s, "\x41\x0e\x20\x9d\x04\x9e\x03\x44\x0a\x0e\x00\xdd\xde\x41\x0b"s,
                UnwindMachine::kArm64);
  const std::vector<CfiRow> rows = RowsOf(section, UnwindMachine::kArm64);
  const UnwindRule leaf = {.cfa = kCfaStack, .return_place = kPlaceSame};
  const UnwindRule framed = {.cfa = kCfaStack,
                             .return_place = kPlaceCfa,
                             .frame_place = kPlaceCfa,
                             .cfa_offset = 32,
                             .return_offset = -24,
                             .frame_offset = -32};
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].rule, leaf);
  EXPECT_EQ(rows[1].rule, framed);
  EXPECT_EQ(rows[2].rule, leaf);
  EXPECT_EQ(rows[2].address, 0x8014u);
  EXPECT_EQ(rows[3].rule, framed);
}

TEST(UnwindCfi, AnUndefinedReturnAddressIsTheOutermostFrame) {
  const std::string section = SectionOf("\x0c\x1f\x00"s, "\x07\x1e"s, UnwindMachine::kArm64);
  const std::vector<CfiRow> rows = RowsOf(section, UnwindMachine::kArm64);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rule.return_place, kPlaceEnd);
}

TEST(UnwindCfi, ASignalFrameIsOneWhateverItSays) {
  const std::string section = SectionOf(kX86Start, "", UnwindMachine::kX86_64, "zRS");
  const std::vector<CfiRow> rows = RowsOf(section, UnwindMachine::kX86_64);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rule, (UnwindRule{.cfa = kCfaSignal}));
}

TEST(UnwindCfi, WhatIsNotUnderstoodIsUnknownOrBad) {
  // The return address in another register.
  EXPECT_EQ(RowsOf(SectionOf("\x0c\x1f\x00"s, "\x09\x1e\x0f"s, UnwindMachine::kArm64),
                   UnwindMachine::kArm64)
                .at(0)
                .rule,
            UnwindRule{});
  // An instruction that nobody knows; a state restored that nobody remembered.
  for (const std::string& instructions : {"\x3e"s, "\x0b"s}) {
    EXPECT_TRUE(RowsOf(SectionOf("\x0c\x1f\x00"s, instructions, UnwindMachine::kArm64),
                       UnwindMachine::kArm64, 1)
                    .empty());
  }
}

TEST(UnwindCfi, EverySectionCutShortEnds) {
  const std::string section =
      SectionOf(kX86Start, "\x41\x0e\x10\x86\x02\x43\x0d\x06"s, UnwindMachine::kX86_64);
  for (size_t length = 0; length < section.size(); ++length) {
    ReadCfi({.bytes = std::string_view(section).substr(0, length),
             .address = kAddress,
             .machine = UnwindMachine::kX86_64},
            [](const CfiFunction& function) { EXPECT_FALSE(function.rows.empty()); });
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
