// SPDX-License-Identifier: Apache-2.0
#include "import/etl_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/utf8.h"

namespace culprit::import_::TEST_FILE {
namespace {

std::string Wide(const std::vector<uint16_t>& units) {
  ByteWriter writer;
  for (const uint16_t unit : units) writer.U16(unit);
  const std::string bytes = writer.Take();
  ByteReader reader(bytes);
  return TakeWideText(reader);
}

TEST(EtlText, Utf16BecomesUtf8) {
  EXPECT_EQ(Wide({'a', 0xe9, 0x20ac, 0xd83d, 0xde00, 0}), "a\u00e9\u20ac\U0001f600");
}

TEST(EtlText, HalfPairsAreReplaced) {
  const std::string bad(kReplacementCharacter);
  EXPECT_EQ(Wide({0xd83d, 'a'}), bad + "a");
  EXPECT_EQ(Wide({0xde00, 'a'}), bad + "a");
  EXPECT_EQ(Wide({'a', 0xd83d}), "a" + bad);
  EXPECT_EQ(Wide({0xd83d, 0xd83d, 0xde00}), bad + "\U0001f600");
}

TEST(EtlText, TextEndsWithItsZeroOrItsBytes) {
  const std::string bytes("a\0b\0\0\0c\0d", 9);
  ByteReader reader(bytes);
  EXPECT_EQ(TakeWideText(reader), "ab");
  EXPECT_EQ(TakeWideText(reader), "c");
  EXPECT_EQ(reader.remaining(), 1u);
  EXPECT_EQ(TakeNarrowText(reader), "d");
  EXPECT_EQ(TakeNarrowText(reader), "");
}

TEST(EtlText, ModulesAreTheLastPartOfTheirPath) {
  EXPECT_EQ(ModuleNameOf("\\SystemRoot\\System32\\drivers\\Ntfs.SYS"), "ntfs.sys");
  EXPECT_EQ(ModuleNameOf("App.exe"), "app.exe");
  EXPECT_EQ(ModuleNameOf("C:\\x\\"), "");
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
