// SPDX-License-Identifier: Apache-2.0
#include "watch/dump_policy.h"

#include <gtest/gtest.h>

namespace culprit::watch::TEST_FILE {
namespace {

constexpr DumpPolicyOptions kOptions = {
    .first = 2, .gap_ns = 10, .pause_ns = 100, .longest_pause_ns = 400};

TEST(DumpPolicy, TakesTheFirstOfATypeAndThenEverFewer) {
  DumpPolicy policy(kOptions);
  std::vector<uint64_t> dumped;
  for (uint64_t now = 0; now < 2000; now += 10) {
    if (policy.Wants("get", now)) dumped.push_back(now);
  }
  // Two at once, then pauses of 100, 200, 400, 400, ...
  const std::vector<uint64_t> wanted = {0, 10, 110, 310, 710, 1110, 1510, 1910};
  EXPECT_EQ(dumped, wanted);
  EXPECT_EQ(policy.counts().at("get").seen, 200u);
  EXPECT_EQ(policy.counts().at("get").dumped, wanted.size());
}

TEST(DumpPolicy, KeepsAGapBetweenAnyTwo) {
  DumpPolicy policy(kOptions);
  EXPECT_TRUE(policy.Wants("get", 0));
  EXPECT_FALSE(policy.Wants("set", 9));
  EXPECT_TRUE(policy.Wants("set", 10));
}

TEST(DumpPolicy, AFrequentTypeDoesNotSilenceARareOne) {
  DumpPolicy policy(kOptions);
  for (uint64_t now = 0; now < 1000; now += 10) policy.Wants("get", now);
  EXPECT_TRUE(policy.Wants("rare", 1005) || policy.Wants("rare", 1015));
}

TEST(DumpPolicy, OneThatIsFarWorseNeedNotWaitLong) {
  DumpPolicy policy;
  EXPECT_TRUE(policy.Wants("a", 0, 1));
  EXPECT_FALSE(policy.Wants("b", 900'000'000, 100));
  EXPECT_FALSE(policy.Wants("b", 2'000'000'000, 7));
  EXPECT_TRUE(policy.Wants("b", 2'000'000'000, 100));
  // Now that one is the measure.
  EXPECT_FALSE(policy.Wants("c", 4'000'000'000, 200));
  EXPECT_TRUE(policy.Wants("c", 7'000'000'000, 1));
}

}  // namespace
}  // namespace culprit::watch::TEST_FILE
