// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_image.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "symbol/elf_file.h"

namespace culprit::record::TEST_FILE {
namespace {

UnwindRule RuleOf(int32_t offset) {
  return {.cfa = kCfaStack, .return_place = kPlaceCfa, .cfa_offset = offset, .return_offset = -8};
}

UnwindTable RandomTable(uint64_t seed, size_t functions, uint64_t origin) {
  std::mt19937_64 random(seed);
  std::vector<UnwindTable::Span> spans;
  uint64_t address = origin;
  for (size_t i = 0; i < functions; ++i) {
    UnwindTable::Span span = {.start = address};
    const size_t rows = 1 + random() % 6;
    for (size_t k = 0; k < rows; ++k) {
      span.rows.push_back({address, RuleOf(static_cast<int32_t>(random() % 40 * 8))});
      address += 1 + random() % (random() % 50 == 0 ? 3000 : 40);
    }
    span.end = address;
    if (random() % 3 == 0) address += random() % (random() % 20 == 0 ? 5000 : 64);
    spans.push_back(std::move(span));
  }
  return UnwindTable::FromSpans(spans);
}

// Every address of the code and some around it; of large tables every few, and all
// where something changes.
void ExpectSame(const UnwindTable& table, const UnwindImage& image,
                const std::vector<UnwindPiece>& pieces) {
  const uint64_t stride = table.rows().size() < 20'000 ? 1 : 61;
  ASSERT_FALSE(pieces.empty());
  EXPECT_LE(pieces.front().start, table.origin());
  EXPECT_GE(pieces.back().end, table.end());
  uint64_t wrong = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(i == 0 || pieces[i].start == pieces[i - 1].end);
    for (uint64_t address = pieces[i].start; address < pieces[i].end; address += stride) {
      if (!(image.Find(pieces[i], address) == table.At(address))) ++wrong;
    }
  }
  size_t piece = 0;
  for (const UnwindTable::Row& row : table.rows()) {
    const uint64_t address = table.origin() + row.offset;
    while (piece + 1 < pieces.size() && address >= pieces[piece].end) ++piece;
    if (!(image.Find(pieces[piece], address) == table.At(address))) ++wrong;
    if (address == pieces[piece].start) continue;
    if (!(image.Find(pieces[piece], address - 1) == table.At(address - 1))) ++wrong;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(UnwindImage, HoldsWhatTheTablesSayAtEveryAddress) {
  UnwindImage image;
  std::vector<std::pair<UnwindTable, std::vector<UnwindPiece>>> all;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    UnwindTable table = RandomTable(seed, 1 + seed * seed * 20, 0x1000 + seed * 77);
    const auto pieces = image.Add(table);
    ASSERT_TRUE(pieces.has_value());
    all.emplace_back(std::move(table), *pieces);
  }
  EXPECT_GT(image.chunks().size(), 1u);
  // Whatever came later has not spoilt what was there.
  for (const auto& [table, pieces] : all) ExpectSame(table, image, pieces);
}

TEST(UnwindImage, ATableLargerThanAChunkIsCutIntoPieces) {
  UnwindImage image;
  const UnwindTable table = RandomTable(99, 60'000, 0x400000);
  const auto pieces = image.Add(table);
  ASSERT_TRUE(pieces.has_value());
  EXPECT_GT(pieces->size(), 2u);
  ExpectSame(table, image, *pieces);
}

TEST(UnwindImage, RefusesWhatFindsNoRoom) {
  UnwindImage image(2);
  EXPECT_FALSE(image.Add(RandomTable(5, 60'000, 0)).has_value());
  const UnwindTable small = RandomTable(6, 100, 0);
  const auto pieces = image.Add(small);
  ASSERT_TRUE(pieces.has_value());
  ExpectSame(small, image, *pieces);
  EXPECT_LE(image.chunks().size(), 2u);
}

TEST(UnwindImage, HoldsASystemLibraryInSixBytesARow) {
  const Result<symbol::ElfFile> file =
      symbol::ElfFile::Open(std::filesystem::canonical("/proc/self/exe").string());
  ASSERT_TRUE(file.ok());
  const Result<UnwindTable> table = UnwindTable::Build(file.value());
  if (!table.ok()) GTEST_SKIP() << table.error().ToString();
  UnwindImage image;
  const auto pieces = image.Add(table.value());
  ASSERT_TRUE(pieces.has_value());
  ExpectSame(table.value(), image, *pieces);
  EXPECT_LE(image.used_bytes(), 6 * image.rows());
  EXPECT_LT(image.rules().size(), 2000u);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
