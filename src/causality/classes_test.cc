// SPDX-License-Identifier: Apache-2.0
#include "causality/classes.h"

#include <gtest/gtest.h>

namespace culprit::causality::TEST_FILE {
namespace {

Evidence Lasting(const std::vector<int64_t>& durations_ns) {
  Evidence evidence;
  evidence.scenarios = {"Open"};
  evidence.traces.push_back({.name = "t"});
  for (uint32_t i = 0; i < durations_ns.size(); ++i) {
    evidence.instances.push_back({.index = i, .dur_ns = durations_ns[i]});
  }
  return evidence;
}

TEST(Threshold, IsADurationAPercentileOrToBeChosen) {
  EXPECT_EQ(ParseThreshold("300ms"),
            (Threshold{.kind = Threshold::Kind::kDuration, .dur_ns = 300'000'000}));
  EXPECT_EQ(ParseThreshold("p90"),
            (Threshold{.kind = Threshold::Kind::kPercentile, .percentile = 90}));
  EXPECT_EQ(ParseThreshold("p99.5")->percentile, 99.5);
  EXPECT_EQ(ParseThreshold("auto")->kind, Threshold::Kind::kChosen);
  for (const char* bad : {"", "p", "p0", "p100", "p-3", "pnan", "12", "-3ms", "fast", "0s"}) {
    EXPECT_FALSE(ParseThreshold(bad).has_value()) << bad;
  }
}

TEST(Classes, LeaveOutWhatIsExactlyAtAThreshold) {
  const Evidence evidence = Lasting({100, 200, 300, 400, 500});
  const auto classes = ChooseClasses(evidence, "Open",
                                     {.fast = {.kind = Threshold::Kind::kDuration, .dur_ns = 200},
                                      .slow = {.kind = Threshold::Kind::kDuration, .dur_ns = 400}});
  ASSERT_TRUE(classes.ok());
  EXPECT_EQ(classes.value().fast, std::vector<uint32_t>{0});
  EXPECT_EQ(classes.value().slow, std::vector<uint32_t>{4});
  EXPECT_EQ(classes.value().between, 3U);
  EXPECT_FALSE(classes.value().chosen);
}

TEST(Classes, PercentilesAreByNearestRank) {
  const std::vector<int64_t> sorted = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  EXPECT_EQ(Percentile(sorted, 50), 50);
  EXPECT_EQ(Percentile(sorted, 51), 60);
  EXPECT_EQ(Percentile(sorted, 90), 90);
  EXPECT_EQ(Percentile(sorted, 99.9), 100);
  EXPECT_EQ(Percentile({7}, 1), 7);
}

TEST(Classes, ChosenOnesLieInTheGapThatSetsTheStruckApart) {
  std::vector<int64_t> durations;
  for (int64_t i = 0; i < 100; ++i) durations.push_back(1000 + i);
  for (int64_t i = 0; i < 8; ++i) durations.push_back(5000 + i);
  const auto classes = ChooseClasses(Lasting(durations), "Open", {});
  ASSERT_TRUE(classes.ok());
  EXPECT_EQ(classes.value().slow.size(), 8U);
  EXPECT_GT(classes.value().t_slow_ns, 1099);
  EXPECT_LT(classes.value().t_slow_ns, 5000);
  EXPECT_TRUE(classes.value().chosen);
  EXPECT_NE(classes.value().why.find("gap"), std::string::npos);
}

TEST(Classes, ChosenOnesFindTheGapWhenMostAreStruck) {
  std::vector<int64_t> durations;
  for (int64_t i = 0; i < 20; ++i) durations.push_back(1000 + i);
  for (int64_t i = 0; i < 30; ++i) durations.push_back(5000 + i);
  const auto classes = ChooseClasses(Lasting(durations), "Open", {});
  ASSERT_TRUE(classes.ok());
  EXPECT_EQ(classes.value().fast.size(), 20U);
  EXPECT_EQ(classes.value().slow.size(), 30U);
}

TEST(Classes, ChosenOnesAreP50AndP90WithoutSuchAGap) {
  std::vector<int64_t> durations;
  for (int64_t i = 1; i <= 100; ++i) durations.push_back(1000 + i);
  const auto classes = ChooseClasses(Lasting(durations), "Open", {});
  ASSERT_TRUE(classes.ok());
  EXPECT_EQ(classes.value().t_fast_ns, 1050);
  EXPECT_EQ(classes.value().t_slow_ns, 1090);
  EXPECT_EQ(classes.value().slow.size(), 10U);
  EXPECT_EQ(classes.value().fast.size(), 49U);
}

TEST(Classes, OfEqualDurationsCannotBeMade) {
  EXPECT_FALSE(ChooseClasses(Lasting({5, 5, 5, 5}), "Open", {}).ok());
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
