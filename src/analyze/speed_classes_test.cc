// SPDX-License-Identifier: Apache-2.0
#include "analyze/speed_classes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/heaviest.h"

namespace culprit::analyze::TEST_FILE {
namespace {

stackmine::Evidence WithDurations(const std::vector<int64_t>& durations_ns) {
  stackmine::Evidence evidence;
  evidence.scenarios = {"s"};
  for (const int64_t dur_ns : durations_ns) {
    stackmine::InstanceFacts facts;
    facts.dur_ns = dur_ns;
    evidence.instances.push_back(facts);
  }
  return evidence;
}

TEST(SpeedClasses, SplitsAtTheMedianAndTheNinetiethPercentile) {
  std::vector<int64_t> durations;
  for (int64_t i = 1; i <= 20; ++i) durations.push_back(i * 1000);
  const SpeedClasses classes = ClassifySpeeds(WithDurations(durations));
  EXPECT_EQ(classes.scenarios[0].p50_ns, 10000);
  EXPECT_EQ(classes.scenarios[0].p90_ns, 18000);
  EXPECT_EQ(classes.fast, 9U);
  EXPECT_EQ(classes.slow, 2U);
  EXPECT_EQ(classes.by_instance.front(), Speed::kFast);
  EXPECT_EQ(classes.by_instance[9], Speed::kMiddle);
  EXPECT_EQ(classes.by_instance.back(), Speed::kSlow);
}

TEST(SpeedClasses, FewOrEqualInstancesHaveNoClasses) {
  const SpeedClasses few = ClassifySpeeds(WithDurations({1, 2, 3, 4, 1000}));
  EXPECT_EQ(few.fast + few.slow, 0U);
  const SpeedClasses equal = ClassifySpeeds(WithDurations(std::vector<int64_t>(50, 7)));
  EXPECT_EQ(equal.fast + equal.slow, 0U);
}

TEST(SpeedClasses, HistogramPlacesAreHalfDoublings) {
  EXPECT_EQ(HistogramPlace(-5), 0U);
  EXPECT_EQ(HistogramPlace(0), 0U);
  EXPECT_EQ(HistogramPlace(1000), 0U);
  EXPECT_EQ(HistogramPlace(2000), 2U);
  EXPECT_EQ(HistogramPlace(4000), 4U);
  EXPECT_EQ(HistogramPlace(INT64_MAX), HistogramPlace(INT64_MAX - 1));
  for (int64_t us = 2; us < 100000; us = us * 5 / 4 + 1) {
    const auto expected =
        static_cast<size_t>(std::floor(2 * std::log2(static_cast<double>(us)) + 1e-9));
    EXPECT_EQ(HistogramPlace(us * 1000), expected) << us;
  }
}

TEST(Heaviest, KeepsAForest) {
  //  0: 10        3: 4
  //  ├ 1: 6       └ 4: 4
  //  └ 2: 4
  const std::vector<int64_t> weights = {10, 6, 4, 4, 4, 0};
  EXPECT_EQ(Heaviest(weights, 100), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(Heaviest(weights, 3), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(Heaviest(weights, 4), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(Heaviest(weights, 0).empty());
}

}  // namespace
}  // namespace culprit::analyze::TEST_FILE
