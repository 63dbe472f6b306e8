// SPDX-License-Identifier: Apache-2.0
#include "base/row_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "base/parallel.h"
#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

struct Pair {
  uint32_t number = 0;
  int64_t square = 0;
};

Pair PairOf(uint64_t i) {
  return {static_cast<uint32_t>(i), static_cast<int64_t>(i) * static_cast<int64_t>(i)};
}

RowLog<Pair> Filled(uint64_t rows, uint64_t memory_bytes, const std::string& folder) {
  RowLog<Pair> log;
  log.SpillTo({.memory_bytes = memory_bytes, .folder = folder});
  for (uint64_t i = 0; i < rows; ++i) log.push_back(PairOf(i));
  return log;
}

void ExpectRows(const RowLog<Pair>& log, uint64_t rows) {
  ASSERT_EQ(log.size(), rows);
  uint64_t i = 0;
  for (const Pair& pair : log) {
    ASSERT_EQ(pair.number, PairOf(i).number);
    ASSERT_EQ(pair.square, PairOf(i).square);
    ++i;
  }
  EXPECT_EQ(i, rows);
  for (const uint64_t at : {uint64_t{0}, rows / 2, rows - 1}) {
    if (at < rows) {
      EXPECT_EQ(log[at].square, PairOf(at).square);
    }
  }
}

TEST(RowLog, RowsAreTheSameWithAnyBound) {
  const TestFolder folder;
  for (const uint64_t memory_bytes : {0, 1, 16, 17, 4096, 1 << 20}) {
    for (const uint64_t rows : {0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 70'000}) {
      SCOPED_TRACE(std::to_string(memory_bytes) + " bytes, " + std::to_string(rows) + " rows");
      ExpectRows(Filled(rows, memory_bytes, folder.path()), rows);
    }
  }
}

TEST(RowLog, StretchesComeBackInAnyOrder) {
  const TestFolder folder;
  constexpr uint64_t kRows = 200'000;
  const RowLog<Pair> log = Filled(kRows, 100'000 * sizeof(Pair) / 3, folder.path());
  EXPECT_GT(log.spilled_bytes(), 0U);
  EXPECT_LT(log.spilled_bytes(), kRows * sizeof(Pair));
  std::mt19937_64 random(1);
  RowCursor<Pair> cursor(log);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t begin = random() % (kRows + 1);
    // Now and then longer than the piece a cursor reads at a time.
    const uint64_t end = begin + random() % (kRows - begin + 1) / (i % 10 == 0 ? 1 : 1000);
    const std::span<const Pair> rows = cursor.Read(begin, end);
    ASSERT_EQ(rows.size(), end - begin);
    for (uint64_t r = 0; r < rows.size(); r += 97) {
      ASSERT_EQ(rows[r].square, PairOf(begin + r).square);
    }
    if (!rows.empty()) {
      ASSERT_EQ(rows.back().number, PairOf(end - 1).number);
    }
  }
}

TEST(RowLog, MemoryStaysBelowTheBound) {
  const TestFolder folder;
  const RowLog<Pair> log = Filled(10'000, 1600, folder.path());
  EXPECT_LT((log.size() * sizeof(Pair)) - log.spilled_bytes(), 1600U);
}

TEST(RowLog, LeavesNoFileBehind) {
  const TestFolder folder;
  const RowLog<Pair> log = Filled(10'000, 1600, folder.path());
  EXPECT_GT(log.spilled_bytes(), 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RowLog, StaysInMemoryWhereNothingCanBeWritten) {
  const RowLog<Pair> log = Filled(10'000, 1600, "/proc/self/no-such-folder");
  EXPECT_EQ(log.spilled_bytes(), 0U);
  EXPECT_NE(log.why_not_spilled().find("no-such-folder"), std::string::npos)
      << log.why_not_spilled();
  ExpectRows(log, 10'000);
}

TEST(RowLog, CopyAndOriginalGoOnApart) {
  const TestFolder folder;
  RowLog<Pair> log = Filled(1000, 1600, folder.path());
  RowLog<Pair> copy = log;
  for (uint64_t i = 1000; i < 3000; ++i) log.push_back(PairOf(i));
  for (uint64_t i = 1000; i < 2000; ++i) copy.push_back(PairOf(i));
  ExpectRows(log, 3000);
  ExpectRows(copy, 2000);
}

TEST(RowLog, RowsOfBeforeTheBoundAreSpilledToo) {
  const TestFolder folder;
  RowLog<Pair> log;
  for (uint64_t i = 0; i < 1000; ++i) log.push_back(PairOf(i));
  log.SpillTo({.memory_bytes = 160, .folder = folder.path()});
  EXPECT_EQ(log.spilled_bytes(), 1000 * sizeof(Pair));
  ExpectRows(log, 1000);
}

TEST(RowLog, IsReadBySeveralThreads) {
  const TestFolder folder;
  const RowLog<Pair> log = Filled(100'000, 10'000, folder.path());
  std::vector<uint64_t> sums(8);
  ParallelFor(sums.size(), 4, [&](size_t i) {
    for (const Pair& pair : log) sums[i] += pair.number;
  });
  for (const uint64_t sum : sums) EXPECT_EQ(sum, 100'000ULL * 99'999 / 2);
}

}  // namespace
}  // namespace culprit::TEST_FILE
