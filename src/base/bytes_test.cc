// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace culprit::TEST_FILE {
namespace {

TEST(Bytes, FixedIntegersAreLittleEndian) {
  ByteWriter out;
  out.U8(1);
  out.U16(0x0203);
  out.U32(0x04050607);
  out.U64(0x08090a0b0c0d0e0f);
  EXPECT_EQ(out.bytes(),
            std::string("\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08", 15));
  ByteReader in(out.bytes());
  EXPECT_EQ(in.U8(), 1);
  EXPECT_EQ(in.U16(), 0x0203);
  EXPECT_EQ(in.U32(), 0x04050607u);
  EXPECT_EQ(in.U64(), 0x08090a0b0c0d0e0fu);
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.remaining(), 0u);
}

TEST(Bytes, VarintsComeBack) {
  std::vector<uint64_t> values = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
  for (int shift = 0; shift < 64; ++shift) values.push_back(uint64_t{1} << shift);
  ByteWriter out;
  for (uint64_t value : values) {
    out.Varint(value);
    out.SignedVarint(static_cast<int64_t>(value));
  }
  ByteReader in(out.bytes());
  for (uint64_t value : values) {
    EXPECT_EQ(in.Varint(), value);
    EXPECT_EQ(in.SignedVarint(), static_cast<int64_t>(value));
  }
  EXPECT_FALSE(in.failed());
}

TEST(Bytes, SmallMagnitudesMakeShortVarints) {
  for (int64_t value : {-64, -1, 0, 1, 63}) {
    ByteWriter out;
    out.SignedVarint(value);
    EXPECT_EQ(out.size(), 1u) << value;
  }
}

TEST(Bytes, AVarintThatNeverEndsOrIsTooLongFails) {
  ByteReader endless(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11));
  endless.Varint();
  EXPECT_TRUE(endless.failed());
  ByteReader too_large(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10));
  too_large.Varint();
  EXPECT_TRUE(too_large.failed());
  ByteReader cut(std::string_view("\x80", 1));
  cut.Varint();
  EXPECT_TRUE(cut.failed());
}

TEST(Bytes, AfterAShortReadEverythingIsZeroAndFailed) {
  ByteReader in(std::string_view("ab", 2));
  EXPECT_EQ(in.U32(), 0u);
  EXPECT_TRUE(in.failed());
  EXPECT_EQ(in.U8(), 0);
  EXPECT_TRUE(in.String().empty());
  EXPECT_TRUE(in.Bytes(1).empty());
}

TEST(Bytes, AStringLongerThanTheRestFails) {
  ByteWriter out;
  out.Varint(1000);
  out.Bytes("short");
  ByteReader in(out.bytes());
  EXPECT_TRUE(in.String().empty());
  EXPECT_TRUE(in.failed());
}

TEST(Bytes, ZigZagIsItsOwnInverse) {
  for (int64_t value : {INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
    EXPECT_EQ(UnZigZag(ZigZag(value)), value);
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
