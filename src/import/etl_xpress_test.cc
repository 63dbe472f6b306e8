// SPDX-License-Identifier: Apache-2.0
#include "import/etl_xpress.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace culprit::import_::TEST_FILE {
namespace {

std::string Alphabet() { return "abcdefghijklmnopqrstuvwxyz"; }

std::string Repeated() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "abc";
  return text;
}

// The examples of [MS-XCA] 3.
std::string PlainAlphabet() { return std::string("\x3f\0\0\0", 4) + Alphabet(); }
std::string PlainRepeated() {
  return std::string("\xff\xff\xff\x1f\x61\x62\x63\x17\x00\x0f\xff\x26\x01", 13);
}
std::string HuffmanAlphabet() {
  std::string table(256, '\0');
  table.replace(48, 14, "\x50\x55\x55\x55\x55\x55\x55\x55\x55\x55\x55\x45\x44\x04");
  table[128] = 4;
  return table +
         std::string("\xd8\x52\x3e\xd7\x94\x11\x5b\xe9\x19\x5f\xf9\xd6\x7c\xdf\x8d\x04\0\0\0\0",
                     20);
}
std::string HuffmanRepeated() {
  std::string table(256, '\0');
  table[48] = 0x30;
  table[49] = 0x23;
  table[128] = 2;
  table[143] = 0x20;
  return table + std::string("\xa8\xdc\0\0\xff\x26\x01", 7);
}

TEST(EtlXpress, UnpacksTheExamplesOfTheSpecification) {
  std::string out;
  EXPECT_TRUE(UnpackXpress(PlainAlphabet(), 26, out));
  EXPECT_EQ(out, Alphabet());
  EXPECT_TRUE(UnpackXpress(PlainRepeated(), 300, out));
  EXPECT_EQ(out, Repeated());
  EXPECT_TRUE(UnpackXpressHuffman(HuffmanAlphabet(), 26, out));
  EXPECT_EQ(out, Alphabet());
  EXPECT_TRUE(UnpackXpressHuffman(HuffmanRepeated(), 300, out));
  EXPECT_EQ(out, Repeated());
}

TEST(EtlXpress, TwoMatchesShareAByteOfTheirLengths) {
  // Flags: a literal, then two matches at distance 1 of lengths 3 + 7 + 2 and 3 + 7 + 5.
  const std::string bytes("\0\0\0\x60z\x07\0\x52\x07\0", 10);
  std::string out;
  EXPECT_TRUE(UnpackXpress(bytes, 28, out));
  EXPECT_EQ(out, std::string(28, 'z'));
}

// Two symbols with codes of one bit: the letter, and a match at distance 1 whose
// length follows.
TEST(EtlXpress, EveryBlockOf64KHasItsOwnTable) {
  const auto block = [](char letter, const std::string& length) {
    std::string table(256, '\0');
    table[static_cast<size_t>(letter) / 2] = letter % 2 == 0 ? 0x01 : 0x10;
    table[271 / 2] = 0x10;
    return table + std::string("\0\x40\0\0", 4) + length;
  };
  const std::string bytes = block('a', "\xff\xfc\xff") + block('d', std::string(1, '\0'));
  std::string out;
  EXPECT_TRUE(UnpackXpressHuffman(bytes, 65536 + 19, out));
  EXPECT_EQ(out, std::string(65536, 'a') + std::string(19, 'd'));
}

TEST(EtlXpress, KeepsWhatCameBeforeTheEnd) {
  std::string out;
  EXPECT_FALSE(UnpackXpress(PlainAlphabet().substr(0, 14), 26, out));
  EXPECT_EQ(out, Alphabet().substr(0, 10));
}

TEST(EtlXpress, EveryCutIsNoticed) {
  std::string out;
  for (size_t size = 0; size < PlainRepeated().size(); ++size) {
    EXPECT_FALSE(UnpackXpress(PlainRepeated().substr(0, size), 300, out)) << size;
    EXPECT_LE(out.size(), 300u);
  }
  for (size_t size = 0; size < HuffmanRepeated().size(); ++size) {
    EXPECT_FALSE(UnpackXpressHuffman(HuffmanRepeated().substr(0, size), 300, out)) << size;
    EXPECT_LE(out.size(), 300u);
  }
}

TEST(EtlXpress, DistancesBeforeTheBeginningAreDamage) {
  std::string out;
  EXPECT_FALSE(UnpackXpress(std::string("\0\0\0\x40z\x08\0", 7), 10, out));
  EXPECT_EQ(out, "z");
}

TEST(EtlXpress, NeverMakesMoreThanIsAskedFor) {
  std::string out;
  EXPECT_FALSE(UnpackXpress(PlainRepeated(), 100, out));
  EXPECT_EQ(out, "abc");
  EXPECT_TRUE(UnpackXpress(PlainAlphabet(), 5, out));
  EXPECT_EQ(out, "abcde");
}

TEST(EtlXpress, ATableThatIsNoCodeIsDamage) {
  std::string bytes = HuffmanAlphabet();
  bytes[0] = 1;  // too much
  std::string out;
  EXPECT_FALSE(UnpackXpressHuffman(bytes, 26, out));
  EXPECT_FALSE(UnpackXpressHuffman(std::string(300, '\0'), 26, out));
}

// Bytes that mean nothing end somewhere, and nowhere near memory's end.
TEST(EtlXpress, AnyBytesAreSafe) {
  uint64_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = round % 2 == 0 ? HuffmanAlphabet() : PlainRepeated();
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[(state >> 33) % bytes.size()] = static_cast<char>(state >> 56);
    }
    std::string out;
    UnpackXpress(bytes, 5000, out);
    EXPECT_LE(out.size(), 5000u);
    UnpackXpressHuffman(bytes, 5000, out);
    EXPECT_LE(out.size(), 5000u);
  }
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
