// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_lists.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::record::TEST_FILE {
namespace {

std::vector<UnwindRange> Ranges(size_t count, uint64_t start) {
  std::vector<UnwindRange> ranges;
  for (size_t i = 0; i < count; ++i) {
    ranges.push_back({.start = start + i * 16, .end = start + i * 16 + 8});
  }
  return ranges;
}

TEST(UnwindLists, RoomIsUsedAgainOnlyAfterAWhile) {
  UnwindRoom room(10);
  EXPECT_EQ(room.Take(6, 0), 0u);
  EXPECT_EQ(room.Take(4, 0), 6u);
  room.GiveBack(0, 6, 100);
  EXPECT_FALSE(room.Take(6, 100 + UnwindRoom::kGraceNs - 1).has_value());
  EXPECT_EQ(room.Take(6, 100 + UnwindRoom::kGraceNs), 0u);
}

// Against an array of who has which entry.
TEST(UnwindLists, RoomIsNeverGivenTwice) {
  constexpr uint32_t kEntries = 300;
  std::mt19937 random(7);
  UnwindRoom room(kEntries);
  std::vector<int> owner(kEntries, 0);
  std::map<int, std::pair<uint32_t, uint32_t>> taken;
  int64_t now_ns = 0;
  int number = 0;
  int refused = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    now_ns += UnwindRoom::kGraceNs / 5;
    if (random() % 2 == 0 && !taken.empty()) {
      const auto it = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      const auto [first, count] = it->second;
      std::fill_n(owner.begin() + first, count, 0);
      room.GiveBack(first, count, now_ns);
      taken.erase(it);
      continue;
    }
    const uint32_t count = 1 + random() % 40;
    const std::optional<uint32_t> first = room.Take(count, now_ns);
    if (!first) {
      ++refused;
      continue;
    }
    ++number;
    ASSERT_LE(*first + count, kEntries);
    for (uint32_t i = *first; i < *first + count; ++i) {
      ASSERT_EQ(owner[i], 0);
      owner[i] = number;
    }
    taken[number] = {*first, count};
  }
  EXPECT_GT(refused, 0);
  // All of it comes back in one piece.
  for (const auto& [key, entries] : taken) room.GiveBack(entries.first, entries.second, now_ns);
  EXPECT_EQ(room.Take(kEntries, now_ns + UnwindRoom::kGraceNs), 0u);
}

TEST(UnwindLists, AChildKeepsTheListThatItsParentReplaces) {
  UnwindLists lists;
  bool is_new = false;
  const UnwindList* list = lists.Set(1, Ranges(3, 0x1000), 0, is_new);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(lists.Share(1, 2, 0), list);
  const UnwindList* other = lists.Set(1, Ranges(5, 0x9000), 0, is_new);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(lists.Find(2), list);
  EXPECT_EQ(lists.Find(2)->ranges, Ranges(3, 0x1000));
  EXPECT_NE(other->first, list->first);
  EXPECT_EQ(lists.size(), 2u);
  lists.Forget(1, 0);
  lists.Forget(2, 0);
  EXPECT_EQ(lists.Find(2), nullptr);
  EXPECT_EQ(lists.Share(1, 3, 0), nullptr);
  EXPECT_EQ(lists.size(), 0u);
}

TEST(UnwindLists, ProcessesWithTheSameRangesShareAList) {
  UnwindLists lists;
  bool is_new = false;
  const UnwindList* list = lists.Set(1, Ranges(3, 0x1000), 0, is_new);
  ASSERT_NE(list, nullptr);
  EXPECT_TRUE(is_new);
  const uint32_t version = list->version;
  EXPECT_EQ(lists.Set(2, Ranges(3, 0x1000), 0, is_new), list);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(lists.Set(2, Ranges(3, 0x1000), 0, is_new), list);
  const UnwindList* other = lists.Set(3, Ranges(3, 0x2000), 0, is_new);
  EXPECT_TRUE(is_new);
  EXPECT_NE(other, list);
  // It stays for as long as somebody has it.
  lists.Forget(1, 0);
  EXPECT_EQ(lists.Set(4, Ranges(3, 0x1000), 0, is_new)->version, version);
  EXPECT_FALSE(is_new);
  lists.Forget(2, 0);
  lists.Forget(4, 0);
  const UnwindList* again = lists.Set(5, Ranges(3, 0x1000), 0, is_new);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(is_new);
  EXPECT_NE(again->version, version);
}

TEST(UnwindLists, RoomOfASharedListComesBackOnce) {
  UnwindLists lists;
  bool is_new = false;
  for (int64_t round = 0; round < 3; ++round) {
    const int64_t now_ns = round * UnwindRoom::kGraceNs;
    ASSERT_NE(lists.Set(1, Ranges(kUnwindRanges, 0x1000), now_ns, is_new), nullptr);
    EXPECT_TRUE(is_new);
    ASSERT_NE(lists.Set(2, Ranges(kUnwindRanges, 0x1000), now_ns, is_new), nullptr);
    EXPECT_EQ(lists.Set(3, Ranges(1, 0x1000), now_ns, is_new), nullptr);
    EXPECT_FALSE(is_new);
    lists.Forget(2, now_ns);
    lists.Forget(1, now_ns);
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
