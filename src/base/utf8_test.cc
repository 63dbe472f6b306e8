// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace culprit::TEST_FILE {
namespace {

// The definition, the slow way: encode and compare.
std::string Encode(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x800) return {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, DecodesEveryCodePointAndNoSurrogate) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    const std::string text = Encode(c);
    const Utf8Character decoded = DecodeUtf8(text);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_EQ(decoded.valid, !surrogate) << static_cast<uint32_t>(c);
    if (surrogate) continue;
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8, RefusesOverlongCutAndOutOfRange) {
  for (const char* bad :
       {"\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xff", "\xc3("}) {
    EXPECT_FALSE(DecodeUtf8(bad).valid) << bad;
    EXPECT_EQ(DecodeUtf8(bad).length, 1u);
  }
}

TEST(Utf8, ReplacesEachBadByteAndKeepsTheRest) {
  EXPECT_EQ(ValidUtf8("a\xff\xfe"
                      "b\xc3\xa9"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b\xc3\xa9");
  EXPECT_EQ(ValidUtf8(""), "");
}

}  // namespace
}  // namespace culprit::TEST_FILE
