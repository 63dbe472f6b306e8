// SPDX-License-Identifier: Apache-2.0
#include "symbol/usdt_notes.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace culprit::symbol::TEST_FILE {
namespace {

std::string Note(std::string_view owner, uint32_t type, std::string_view description) {
  ByteWriter out;
  out.U32(static_cast<uint32_t>(owner.size()));
  out.U32(static_cast<uint32_t>(description.size()));
  out.U32(type);
  out.Bytes(owner);
  while (out.size() % 4 != 0) out.U8(0);
  out.Bytes(description);
  while (out.size() % 4 != 0) out.U8(0);
  return out.Take();
}

std::string Description(uint64_t address, uint64_t semaphore, std::string_view names) {
  ByteWriter out;
  out.U64(address);
  out.U64(0x100);
  out.U64(semaphore);
  out.Bytes(names);
  return out.Take();
}

constexpr std::string_view kOwner{"stapsdt\0", 8};
constexpr std::string_view kNames{"db\0query__start\0-8@%rdi\0", 24};

TEST(UsdtNotes, AProbeHasItsNamesAndPlaces) {
  const auto notes = ParseUsdtNotes(Note(kOwner, 3, Description(0x1234, 0x5678, kNames)), true);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].provider, "db");
  EXPECT_EQ(notes[0].name, "query__start");
  EXPECT_EQ(notes[0].arguments, "-8@%rdi");
  EXPECT_EQ(notes[0].address, 0x1234u);
  EXPECT_EQ(notes[0].base, 0x100u);
  EXPECT_EQ(notes[0].semaphore, 0x5678u);
}

TEST(UsdtNotes, OtherNotesAreNoProbes) {
  const std::string good = Note(kOwner, 3, Description(1, 0, kNames));
  const std::string bytes =
      Note("GNU", 3, Description(2, 0, kNames)) + Note(kOwner, 4, Description(3, 0, kNames)) + good;
  const auto notes = ParseUsdtNotes(bytes, true);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].address, 1u);
}

TEST(UsdtNotes, EveryPrefixAndEveryCutDescriptionIsHarmless) {
  const std::string good = Note(kOwner, 3, Description(1, 0, kNames));
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(ParseUsdtNotes(good.substr(0, size), true).size() <= 1);
  }
  const std::string cut = Description(1, 0, std::string_view("db\0query", 8));
  EXPECT_TRUE(ParseUsdtNotes(Note(kOwner, 3, cut), true).empty());
}

TEST(UsdtNotes, LengthsThatReachBeyondTheEndAreNotFollowed) {
  std::string bytes = Note(kOwner, 3, Description(1, 0, kNames));
  bytes[4] = '\xff';
  bytes[7] = '\x7f';
  EXPECT_TRUE(ParseUsdtNotes(bytes, true).empty());
}

}  // namespace
}  // namespace culprit::symbol::TEST_FILE
