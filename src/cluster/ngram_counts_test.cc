// SPDX-License-Identifier: Apache-2.0
#include "cluster/ngram_counts.h"

#include <gtest/gtest.h>

namespace culprit::cluster::TEST_FILE {
namespace {

TEST(NgramCountsTest, SharesOfStacksCallersAndCallees) {
  NgramCounts counts;
  counts.AddStack(PatternSymbols{0, 1, 2}, 3);
  counts.AddStack(PatternSymbols{0, 1, 3}, 1);
  counts.AddStack(PatternSymbols{4, 2}, 4);
  EXPECT_EQ(counts.stacks(), 8U);
  EXPECT_EQ(counts.Uni(0), kOne / 2);
  EXPECT_EQ(counts.Uni(2), kOne / 8);
  EXPECT_EQ(counts.ForwardPair(0, 1), 0U);                       // 0 always calls 1
  EXPECT_EQ(counts.ForwardPair(1, 2), kOne / 4);                 // 3 of its 4 calls
  EXPECT_EQ(counts.BackwardPair(1, 2), 4 * uint64_t{kOne} / 7);  // 3 of its 7 callers
  EXPECT_EQ(counts.BackwardPair(4, 2), 3 * uint64_t{kOne} / 7);
}

TEST(NgramCountsTest, WhatWasNeverSeenIsFullyUnlikely) {
  NgramCounts counts;
  EXPECT_EQ(counts.Uni(7), kOne);
  counts.AddStack(PatternSymbols{0, 1}, 1);
  EXPECT_EQ(counts.Uni(7), kOne);
  EXPECT_EQ(counts.ForwardPair(1, 0), kOne);
  EXPECT_EQ(counts.BackwardPair(7, 8), kOne);
}

TEST(NgramCountsTest, ARepeatedFrameCountsOnceForItsStackAndEachTimeForPairs) {
  NgramCounts counts;
  counts.AddStack(PatternSymbols{0, 0, 0, 1}, 1);
  counts.AddStack(PatternSymbols{1}, 1);
  EXPECT_EQ(counts.Uni(0), kOne / 2);
  EXPECT_EQ(counts.Uni(1), 0U);
  EXPECT_EQ(counts.ForwardPair(0, 0), uint64_t{kOne} / 3);  // 2 of 3 calls
  EXPECT_EQ(counts.ForwardPair(0, 1), 2 * uint64_t{kOne} / 3);
}

TEST(NgramCountsTest, CountsOfSeveralTracesAddUp) {
  NgramCounts whole;
  NgramCounts first;
  NgramCounts second;
  const std::vector<PatternSymbols> stacks = {{0, 1, 2}, {5, 1}, {2, 2}, {}};
  for (size_t i = 0; i < stacks.size(); ++i) {
    whole.AddStack(stacks[i], i + 1);
    (i % 2 == 0 ? first : second).AddStack(stacks[i], i + 1);
  }
  second.Add(first);
  second.AddStack(PatternSymbols{1, 0, 1}, 2);
  whole.AddStack(PatternSymbols{1, 0, 1}, 2);
  EXPECT_EQ(second.stacks(), whole.stacks());
  for (Symbol f = 0; f < 7; ++f) {
    EXPECT_EQ(second.Uni(f), whole.Uni(f));
    for (Symbol g = 0; g < 7; ++g) {
      EXPECT_EQ(second.ForwardPair(f, g), whole.ForwardPair(f, g));
      EXPECT_EQ(second.BackwardPair(f, g), whole.BackwardPair(f, g));
    }
  }
}

TEST(NgramCountsTest, LargeCountsDoNotOverflow) {
  NgramCounts counts;
  counts.AddStack(PatternSymbols{0, 1}, uint64_t{1} << 60);
  counts.AddStack(PatternSymbols{0, 2}, uint64_t{3} << 60);
  EXPECT_EQ(counts.Uni(1), 3 * (kOne / 4));
  EXPECT_EQ(counts.ForwardPair(0, 1), 3 * (kOne / 4));
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
