// SPDX-License-Identifier: Apache-2.0
#include "symbol/frame_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/bytes.h"

namespace culprit::symbol::TEST_FILE {
namespace {

constexpr uint64_t kAddress = 0x10000;

// A CIE "zPLR" with pc-relative 32-bit pointers and two functions.
std::string SmallSection() {
  ByteWriter cie;
  cie.U32(0);
  cie.U8(1);
  cie.Bytes(std::string_view("zPLR\0", 5));
  cie.Varint(1);
  cie.U8(0x78);
  cie.U8(30);
  cie.Varint(7);
  cie.U8(0x9b);
  cie.U32(1234);
  cie.U8(0x1b);
  cie.U8(0x1b);
  ByteWriter out;
  out.U32(static_cast<uint32_t>(cie.size()));
  out.Bytes(cie.bytes());
  for (const uint32_t start : {0x400u, 0x500u}) {
    out.U32(16);
    out.U32(static_cast<uint32_t>(out.size()));
    out.U32(start - static_cast<uint32_t>(kAddress + out.size()));
    out.U32(0x20);
    out.U32(0);
  }
  out.U32(0);
  out.Bytes("bytes after the end");
  return out.Take();
}

TEST(FrameRanges, ReadsStartsAndSizes) {
  uint64_t bad = 0;
  const auto ranges = ReadFrameRanges({.bytes = SmallSection(), .address = kAddress}, bad);
  EXPECT_EQ(ranges, (std::vector<CodeRange>{{0x400, 0x420}, {0x500, 0x520}}));
  EXPECT_EQ(bad, 0u);
}

TEST(FrameRanges, ReadsBigEndianAbsolutePointers) {
  const auto big = [](uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
    return bytes;
  };
  const std::string cie = big(0) + std::string("\x01\0\x01\x78\x1e", 5) + std::string(3, '\0');
  const std::string fde = big(20) + big(0x8000) + big(0x44);
  const std::string bytes = big(12) + cie + big(12) + fde;
  uint64_t bad = 0;
  const auto ranges =
      ReadFrameRanges({.bytes = bytes, .address = 0, .big_endian = true, .is_64_bit = false}, bad);
  EXPECT_EQ(ranges, (std::vector<CodeRange>{{0x8000, 0x8044}}));
  EXPECT_EQ(bad, 0u);
}

TEST(FrameRanges, SurvivesCutsAnywhere) {
  const std::string whole = SmallSection();
  for (size_t length = 0; length <= whole.size(); ++length) {
    uint64_t bad = 0;
    const std::string cut = whole.substr(0, length);
    EXPECT_LE(ReadFrameRanges({.bytes = cut, .address = kAddress}, bad).size(), 2u);
  }
}

TEST(FrameRanges, SurvivesEveryChangedByte) {
  const std::string whole = SmallSection();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      uint64_t bad = 0;
      EXPECT_LE(ReadFrameRanges({.bytes = changed, .address = kAddress}, bad).size(), 2u);
    }
  }
}

TEST(FrameRanges, FindsTheSectionFromItsHeader) {
  ByteWriter header;
  header.U8(1);
  header.U8(0x1b);
  header.U8(0x03);
  header.U8(0x3b);
  header.U32(0x100);
  EXPECT_EQ(FrameSectionAddress({.bytes = header.bytes(), .address = 0x2000}), 0x2104u);
  EXPECT_FALSE(FrameSectionAddress({.bytes = header.bytes().substr(0, 7), .address = 0x2000}));
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
