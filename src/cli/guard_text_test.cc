// SPDX-License-Identifier: Apache-2.0
#include "cli/guard_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/buffer_output.h"

namespace culprit::cli::TEST_FILE {
namespace {

std::string MeasuredCost(const OwnCostShare& cost) {
  GuardSummary summary;
  summary.budget_ppm = 10'000;
  summary.own_cost = cost;
  const std::string text = GuardSummaryText(summary, BufferOutput());
  constexpr std::string_view kName = "measured cost";
  const size_t begin = text.find(kName);
  if (begin == std::string::npos) return "";
  const size_t value = text.find_first_not_of(' ', begin + kName.size());
  return text.substr(value, text.find('\n', value) - value);
}

TEST(GuardSummary, SaysWhatTheGuardsTook) {
  EXPECT_EQ(MeasuredCost({.samples = 10'000, .own = 80}),
            "0.8 % ± 0.2 % of the program's CPU time (10.0 k samples)");
}

TEST(GuardSummary, SaysThatItIsSurelyMoreThanTheBudget) {
  EXPECT_EQ(MeasuredCost({.samples = 10'000, .own = 115}),
            "1.2 % ± 0.2 % of the program's CPU time (10.0 k samples)")
      << "it may as well be less";
  EXPECT_EQ(MeasuredCost({.samples = 10'000, .own = 300}),
            "3.0 % ± 0.3 % of the program's CPU time (10.0 k samples); above the budget: a smaller "
            "--budget has fewer guards");
}

TEST(GuardSummary, SaysWhyTheCostIsNotKnown) {
  EXPECT_EQ(MeasuredCost({.samples = 199, .own = 2}), "not known: only 199 samples of the program");
  EXPECT_EQ(MeasuredCost({.why_not = "cannot sample CPUs: Permission denied"}),
            "not known: cannot sample CPUs: Permission denied");
}

TEST(GuardSummary, IsOneLineOfJson) {
  GuardSummary summary;
  summary.totals.units = 12;
  summary.totals.hits = 30;
  summary.reports = 3;
  summary.budget_ppm = 10'000;
  summary.own_cost = {.samples = 10'000, .own = 300};
  summary.by_type["a \"quoted\" type"] = {3, 7'000'000};
  const std::string text = GuardSummaryJson(summary);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["state"], "summary");
  EXPECT_EQ(json["units"], 12);
  EXPECT_EQ(json["hits"], 30);
  EXPECT_EQ(json["slow_units"], 3);
  EXPECT_DOUBLE_EQ(json["budget_share"].get<double>(), 0.01);
  EXPECT_DOUBLE_EQ(json["measured_cost"]["share"].get<double>(), 0.03);
  EXPECT_EQ(json["slow_types"][0]["type"], "a \"quoted\" type");
  EXPECT_EQ(json["slow_types"][0]["longest_ns"], 7'000'000);
}

TEST(GuardSummary, HasNoShareInJsonThatIsNotKnown) {
  GuardSummary summary;
  summary.own_cost = {.samples = 199, .own = 2};
  EXPECT_FALSE(nlohmann::json::parse(GuardSummaryJson(summary))["measured_cost"].contains("share"));
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
