// SPDX-License-Identifier: Apache-2.0
#include "stackmine/lambda.h"

#include <gtest/gtest.h>

namespace culprit::stackmine::TEST_FILE {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(Lambda, ThePapersExampleIsThirtySeconds) {
  const LambdaRule rule = ParseTraceRule("traces=10%,delay=300ms").value();
  EXPECT_EQ(ResolveLambda(rule, 0, 1000), 30 * kSecond);
}

TEST(Lambda, SharesAreOfTheAreaOfInterest) {
  LambdaRule rule;
  rule.share = *ParseShare("2%");
  EXPECT_EQ(ResolveLambda(rule, 50 * kSecond, 7), kSecond);
  EXPECT_EQ(ResolveLambda(rule, 0, 7), 1);
}

TEST(Lambda, ShareTextsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(ParseShare("1%"), kShareOne / 100);
  EXPECT_EQ(ParseShare("0.5 %"), kShareOne / 200);
  EXPECT_EQ(ParseShare("0.01"), kShareOne / 100);
  EXPECT_EQ(ParseShare("100%"), kShareOne);
  for (const char* bad : {"", "0", "-1%", "101%", "1.5", "x", "%"}) {
    EXPECT_FALSE(ParseShare(bad).has_value()) << bad;
  }
}

TEST(Lambda, WrongRulesSayWhatIsWrong) {
  for (const char* bad : {"", "traces=10%", "delay=1s", "traces=0,delay=1s", "traces=10%,delay=-1s",
                          "traces=10%,delay=1s,x=1", "traces,delay"}) {
    const auto rule = ParseTraceRule(bad);
    ASSERT_FALSE(rule.ok()) << bad;
    EXPECT_FALSE(rule.error().hint.empty());
  }
}

TEST(Lambda, HugeNumbersSaturateInsteadOfOverflowing) {
  const LambdaRule rule{
      .kind = LambdaRule::Kind::kTraces, .share = kShareOne, .delay_ns = INT64_MAX / 2};
  EXPECT_EQ(ResolveLambda(rule, 0, 1'000'000), INT64_MAX);
  EXPECT_EQ(ShareOf(kShareOne, INT64_MAX), INT64_MAX);
  EXPECT_EQ(ShareOf(kShareOne / 2, INT64_MAX - 1), INT64_MAX / 2);
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
