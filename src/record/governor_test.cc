// SPDX-License-Identifier: Apache-2.0
#include "record/governor.h"

#include <gtest/gtest.h>

namespace culprit::record::TEST_FILE {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

constexpr int64_t kTurn = kSecond / 20;

Cost Turn(double share) {
  return {.wall_ns = kTurn,
          .kernel_ns = static_cast<int64_t>(share * kTurn),
          .own_ns = 0,
          .busy_ns = kTurn};
}

TEST(Governor, StaysWhereItIsWithinTheBudget) {
  Governor governor(0.03, 0, 1'000'000);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(governor.Turn(Turn(0.023), false));
  EXPECT_EQ(governor.level(), 0);
}

TEST(Governor, RisesAtOnceAndFasterWhenFarTooDear) {
  Governor governor(0.03, 0, 1'000'000);
  EXPECT_TRUE(governor.Turn(Turn(0.04), false));
  EXPECT_EQ(governor.level(), 1);
  EXPECT_TRUE(governor.Turn(Turn(0.1), false));
  EXPECT_EQ(governor.level(), 3);
  // Too dear though short waits are left out: it must look less.
  EXPECT_TRUE(governor.Turn(Turn(0.2), false));
  EXPECT_LE(0.2 * governor.current().duty, 0.03);
  Governor other(0.03, 0, 1'000'000);
  EXPECT_TRUE(other.Turn(Turn(0.5), false));
  EXPECT_EQ(other.level(), 4);
}

// A machine on which looking at all switches costs `share` of the CPU.
int SettleAt(double share, int turns) {
  Governor governor(0.03, 0, 1'000'000);
  for (int i = 0; i < turns; ++i) governor.Turn(Turn(share * governor.current().duty), false);
  return governor.level();
}

TEST(Governor, PausesUntilTheBudgetHoldsAndWithinAFewTurns) {
  for (const double share : {0.04, 0.1, 0.2, 0.4, 1.0}) {
    const int level = SettleAt(share, 6);
    const Governor any(0.03, 0, 1'000'000);
    EXPECT_LE(share * any.At(level).duty, 0.03) << share;
    // Not more than needed: the level before the last but one would be too dear.
    if (level > 7) {
      EXPECT_GT(share * any.At(level - 2).duty, 0.03) << share;
    }
  }
}

TEST(Governor, TheLastLevelDoesNotLookAtAll) {
  const Governor governor(0.03, 0, 1'000'000);
  EXPECT_EQ(governor.At(Governor::kLevels - 1).duty, 0);
  EXPECT_EQ(SettleAt(100, 8), Governor::kLevels - 1);
}

TEST(Governor, WhatItsOwnTicksCostIsNotHeldAgainstALevel) {
  Governor governor(0.03, 0, 1'000'000);
  const Cost idle = {.wall_ns = kSecond, .kernel_ns = 0, .own_ns = 5'000'000, .busy_ns = 1000};
  EXPECT_FALSE(governor.Turn(idle, false));
  const Cost dear = {.wall_ns = kSecond, .kernel_ns = 0, .own_ns = 50'000'000, .busy_ns = 1000};
  EXPECT_TRUE(governor.Turn(dear, false));
}

TEST(Governor, FallsOnlyAfterSeveralCheapTurns) {
  Governor governor(0.03, 0, 1'000'000);
  governor.Turn(Turn(0.04), false);
  int turns = 0;
  while (governor.level() > 0 && turns < 1000) {
    governor.Turn(Turn(0.001), false);
    ++turns;
  }
  EXPECT_GE(turns, 5);
  EXPECT_LT(turns, 1000);
}

TEST(Governor, WaitsLongerBeforeItTriesAgainWhatWasTooDear) {
  Governor governor(0.03, 0, 1'000'000);
  governor.Turn(Turn(0.04), false);
  const auto turns_until_fall = [&] {
    int turns = 0;
    const int before = governor.level();
    while (governor.level() == before && turns < 10'000) {
      governor.Turn(Turn(0.001), false);
      ++turns;
    }
    return turns;
  };
  const int first = turns_until_fall();
  governor.Turn(Turn(0.04), false);
  EXPECT_GT(turns_until_fall(), first);
}

TEST(Governor, RisesWhenRecordsAreLost) {
  Governor governor(0.03, 0, 1'000'000);
  EXPECT_TRUE(governor.Turn(Turn(0.001), true));
}

TEST(Governor, WithoutABudgetNothingIsLeftOut) {
  Governor governor(0, 0, 1'000'000);
  EXPECT_FALSE(governor.Turn(Turn(10), true));
  EXPECT_EQ(governor.level(), 0);
}

TEST(Governor, ASleepingProgramDoesNotMakeItBlind) {
  Governor governor(0.03, 0, 1'000'000);
  const Cost idle = {
      .wall_ns = kSecond, .kernel_ns = 1'000'000, .own_ns = 1'000'000, .busy_ns = 1000};
  EXPECT_FALSE(governor.Turn(idle, false));
}

TEST(Governor, EveryLevelLeavesOutAtLeastAsMuchAsTheOneBefore) {
  const Governor governor(0.03, 100'000, 1'000'000);
  for (int level = 0; level < Governor::kLevels; ++level) {
    EXPECT_GE(governor.At(level).min_wait_ns, 100'000);
    if (level == 0) continue;
    EXPECT_GE(governor.At(level).min_wait_ns, governor.At(level - 1).min_wait_ns);
    EXPECT_GE(governor.At(level).sample_period_ns, governor.At(level - 1).sample_period_ns);
    EXPECT_LE(governor.At(level).duty, governor.At(level - 1).duty);
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
