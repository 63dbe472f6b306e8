// SPDX-License-Identifier: Apache-2.0
#include "report/plain_text.h"

#include <gtest/gtest.h>

namespace culprit::report::TEST_FILE {
namespace {

TEST(PlainText, KeepsTextInAnyScript) {
  EXPECT_EQ(PlainText("ntdll!RtlWait (überall) 日本 😀"), "ntdll!RtlWait (überall) 日本 😀");
}

TEST(PlainText, ReplacesWhatDrivesATerminalOrBreaksALine) {
  EXPECT_EQ(PlainText("a\nb\tc\x1b[31md\x7f"), "a?b?c?[31md?");
  EXPECT_EQ(PlainText("\xc2\x9b"), "?");           // C1 control: CSI in one byte
  EXPECT_EQ(PlainText("x\u202Ey\u2028"), "x?y?");  // turns the direction; ends the line
  EXPECT_EQ(PlainText(std::string_view("a\0b", 3)), "a?b");
}

TEST(PlainText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(PlainText("a\xff\xfe"), "a\uFFFD\uFFFD");
  EXPECT_EQ(PlainText("\xc0\xaf"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(PlainText("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(PlainText("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(PlainText("\xe2\x80"), "\uFFFD\uFFFD");                      // cut off
}

TEST(PlainText, OfAnyTwoBytesIsStable) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string bytes = {static_cast<char>(a), static_cast<char>(b)};
      const std::string once = PlainText(bytes);
      ASSERT_EQ(PlainText(once), once) << a << " " << b;
      ASSERT_LE(CodePoints(once), 2u);
      ASSERT_EQ(CodePointOffset(once, CodePoints(once)), once.size());
    }
  }
}

TEST(CodePoints, AreCountedAndFoundAsCharacters) {
  EXPECT_EQ(CodePoints("aé日😀"), 4u);
  EXPECT_EQ(CodePointOffset("aé日😀", 0), 0u);
  EXPECT_EQ(CodePointOffset("aé日😀", 2), 3u);
  EXPECT_EQ(CodePointOffset("aé日😀", 3), 6u);
  EXPECT_EQ(CodePointOffset("aé日😀", 9), 10u);
}

TEST(Styled, AddsSequencesOnlyWithColor) {
  EXPECT_EQ(Styled(Style::kBold, "x", true), "\033[1mx\033[0m");
  EXPECT_EQ(Styled(Style::kDim, "x", true), "\033[2mx\033[0m");
  EXPECT_EQ(Styled(Style::kBold, "x", false), "x");
  EXPECT_EQ(Styled(Style::kBold, "", true), "");
}

}  // namespace
}  // namespace culprit::report::TEST_FILE
