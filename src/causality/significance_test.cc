// SPDX-License-Identifier: Apache-2.0
#include "causality/significance.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace culprit::causality::TEST_FILE {
namespace {

std::vector<bool> FirstOf(size_t size, size_t in_class) {
  std::vector<bool> labels(size);
  for (size_t i = 0; i < in_class; ++i) labels[i] = true;
  return labels;
}

// All deals of `in_class` out of `size`, enumerated.
double ExactValue(const std::vector<PatternCost>& costs, size_t size, size_t in_class) {
  int64_t observed = 0;
  for (const PatternCost& cost : costs) observed += cost.instance < in_class ? cost.cost_ns : 0;
  uint64_t deals = 0;
  uint64_t reached = 0;
  for (uint32_t deal = 0; deal < 1U << size; ++deal) {
    if (static_cast<size_t>(std::popcount(deal)) != in_class) continue;
    int64_t sum = 0;
    for (const PatternCost& cost : costs) sum += (deal >> cost.instance & 1) * cost.cost_ns;
    ++deals;
    reached += sum >= observed ? 1 : 0;
  }
  return static_cast<double>(reached) / static_cast<double>(deals);
}

TEST(Significance, OfOnePatternIsThatOfAllDealsEnumerated) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    const size_t size = 8 + random() % 5;
    const size_t in_class = 2 + random() % 4;
    std::vector<PatternCost> costs;
    for (uint32_t i = 0; i < size; ++i) {
      if (random() % 3 != 0) costs.push_back({i, static_cast<int64_t>(random() % 1000)});
    }
    const Significance found =
        TestPatterns({costs}, FirstOf(size, in_class), {.deals = 5000, .seed = 9})[0];
    const double exact = ExactValue(costs, size, in_class);
    const double error = 5 * std::sqrt(exact * (1 - exact) / 5000) + 0.001;
    EXPECT_NEAR(found.p_single, exact, error) << round;
    // Alone, a pattern is the largest of all.
    EXPECT_EQ(found.p_value, found.p_single) << round;
  }
}

TEST(Significance, CorrectsForTheNumberOfPatterns) {
  // 400 patterns of pure chance: that any of them is called significant must happen
  // in about one corpus of twenty.
  std::mt19937_64 random(11);
  int alarms = 0;
  int single_alarms = 0;
  for (int corpus = 0; corpus < 60; ++corpus) {
    std::vector<std::vector<PatternCost>> patterns(400);
    for (auto& costs : patterns) {
      for (uint32_t i = 0; i < 40; ++i) {
        if (random() % 2 == 0) costs.push_back({i, static_cast<int64_t>(1 + random() % 100)});
      }
    }
    bool any = false;
    const auto options = SignificanceOptions{.deals = 200, .seed = static_cast<uint64_t>(corpus)};
    for (const Significance& found : TestPatterns(patterns, FirstOf(40, 15), options)) {
      any = any || found.p_value <= 0.05;
      single_alarms += found.p_single <= 0.05 ? 1 : 0;
      EXPECT_GE(found.p_value, found.p_single);
    }
    alarms += any ? 1 : 0;
  }
  EXPECT_LE(alarms, 8);
  EXPECT_GT(single_alarms, 60 * 400 / 40);
}

TEST(Significance, FindsThePatternThatIsThereAmongThoseOfChance) {
  std::mt19937_64 random(5);
  std::vector<std::vector<PatternCost>> patterns(200);
  for (auto& costs : patterns) {
    for (uint32_t i = 0; i < 60; ++i) {
      if (random() % 2 == 0) costs.push_back({i, static_cast<int64_t>(1 + random() % 100)});
    }
  }
  patterns[77].clear();
  for (uint32_t i = 0; i < 18; ++i) patterns[77].push_back({i, 500});
  const auto found = TestPatterns(patterns, FirstOf(60, 20), {});
  EXPECT_LE(found[77].p_value, 0.001);
  for (size_t i = 0; i < found.size(); ++i) {
    if (i == 77) continue;
    EXPECT_GT(found[i].p_value, 0.01) << i;
  }
}

TEST(Significance, IsTheSameForAnyNumberOfThreads) {
  std::vector<std::vector<PatternCost>> patterns = {{{0, 5}, {1, 8}, {7, 2}}, {{3, 1}}, {}};
  const auto one = TestPatterns(patterns, FirstOf(9, 3), {.deals = 333, .jobs = 1});
  const auto many = TestPatterns(patterns, FirstOf(9, 3), {.deals = 333, .jobs = 8});
  for (size_t i = 0; i < patterns.size(); ++i) {
    EXPECT_EQ(one[i].p_value, many[i].p_value);
    EXPECT_EQ(one[i].p_single, many[i].p_single);
  }
  EXPECT_EQ(one[2].p_single, 1);
}

TEST(Significance, SaysNothingWithoutTwoClassesOrDeals) {
  const std::vector<std::vector<PatternCost>> patterns = {{{0, 5}}};
  EXPECT_EQ(TestPatterns(patterns, FirstOf(4, 0), {})[0].p_value, 1);
  EXPECT_EQ(TestPatterns(patterns, FirstOf(4, 4), {})[0].p_value, 1);
  EXPECT_EQ(TestPatterns(patterns, FirstOf(4, 1), {.deals = 0})[0].p_value, 1);
}

TEST(Significance, OfBothSidesSeesWhatShrankToo) {
  std::vector<PatternCost> costs;
  for (uint32_t i = 20; i < 40; ++i) costs.push_back({i, 100});
  EXPECT_GT(TestPatterns({costs}, FirstOf(40, 20), {})[0].p_value, 0.99);
  EXPECT_LT(TestPatterns({costs}, FirstOf(40, 20), {.two_sided = true})[0].p_value, 0.001);
}

}  // namespace
}  // namespace culprit::causality::TEST_FILE
