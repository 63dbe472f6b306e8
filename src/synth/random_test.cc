// SPDX-License-Identifier: Apache-2.0
#include "synth/random.h"

#include <gtest/gtest.h>

#include <vector>

namespace culprit::synth::TEST_FILE {
namespace {

// Values fixed once: a change here changes every corpus ever made from a seed.
TEST(Random, GivesTheSameNumbersEverywhere) {
  Random random(1);
  EXPECT_EQ(random.Next(), 12966619160104079557u);
  EXPECT_EQ(random.Below(1'000'000), 520436u);
  EXPECT_EQ(random.Exponential(1'000'000), 865234);
  EXPECT_EQ(random.HeavyTailed(1'000'000), 749023);
}

TEST(Random, BelowStaysBelowAndReachesBothEnds) {
  Random random(2);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t value = random.Below(7);
    ASSERT_LT(value, 7u);
    low |= value == 0;
    high |= value == 6;
  }
  EXPECT_TRUE(low);
  EXPECT_TRUE(high);
  EXPECT_EQ(random.Below(0), 0u);
}

TEST(Random, SkewedReachesEveryIndexAndPrefersSmallOnes) {
  Random random(6);
  for (size_t size : {1, 2, 5, 40}) {
    std::vector<int> hits(size);
    for (int i = 0; i < 40'000; ++i) ++hits.at(random.Skewed(size));
    for (int count : hits) EXPECT_GT(count, 0);
    EXPECT_GE(hits.front(), hits.back());
  }
}

TEST(Random, ExponentialHasItsMean) {
  Random random(3);
  int64_t sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t value = random.Exponential(1000);
    ASSERT_GE(value, 0);
    sum += value;
  }
  EXPECT_NEAR(static_cast<double>(sum) / 100'000, 1000, 20);
}

TEST(Random, HeavyTailHasItsMedianAndATail) {
  Random random(4);
  int below = 0;
  int far = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t value = random.HeavyTailed(1000);
    below += value < 1000;
    far += value > 8000;
  }
  EXPECT_NEAR(below, 50'000, 1'500);
  EXPECT_GT(far, 1'000);
  EXPECT_LT(far, 6'000);
}

TEST(Random, StreamsOfOneSeedDiffer) {
  EXPECT_NE(Random(5, 0).Next(), Random(5, 1).Next());
  EXPECT_EQ(Random(5, 1).Next(), Random(5, 1).Next());
}

}  // namespace
}  // namespace culprit::synth::TEST_FILE
