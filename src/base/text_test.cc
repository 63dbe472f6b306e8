// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace culprit::TEST_FILE {
namespace {

TEST(Text, DurationsHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(FormatDuration(0), "0 ns");
  EXPECT_EQ(FormatDuration(999), "999 ns");
  EXPECT_EQ(FormatDuration(1000), "1.00 us");
  EXPECT_EQ(FormatDuration(1'234'567), "1.23 ms");
  EXPECT_EQ(FormatDuration(12'345'678), "12.3 ms");
  EXPECT_EQ(FormatDuration(382'000'000), "382 ms");
  EXPECT_EQ(FormatDuration(8'280'000'000), "8.28 s");
  EXPECT_EQ(FormatDuration(90'000'000'000), "1.50 min");
  EXPECT_EQ(FormatDuration(7'200'000'000'000), "2.00 h");
  EXPECT_EQ(FormatDuration(-1'500'000), "-1.50 ms");
  EXPECT_EQ(FormatDuration(INT64_MIN), FormatDuration(-INT64_MAX));
}

TEST(Text, CountsAreExactWhileTheyFit) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(9999), "9999");
  EXPECT_EQ(FormatCount(12'345), "12.3 k");
  EXPECT_EQ(FormatCount(505'500), "506 k");
  EXPECT_EQ(FormatCount(1'234'567), "1.23 M");
  EXPECT_EQ(FormatCount(181'000'000), "181 M");
  EXPECT_EQ(FormatCount(UINT64_MAX), "18446744074 G");
}

TEST(Text, BytesAreInPowersOfThousand) {
  EXPECT_EQ(FormatBytes(12), "12 B");
  EXPECT_EQ(FormatBytes(1500), "1.50 kB");
  EXPECT_EQ(FormatBytes(4'000'000'000), "4.00 GB");
}

TEST(Text, SharesRoundHalfUpAndSurviveExtremes) {
  EXPECT_EQ(FormatShare(1, 3), "33.3 %");
  EXPECT_EQ(FormatShare(2, 3), "66.7 %");
  EXPECT_EQ(FormatShare(-1, 2), "-50.0 %");
  EXPECT_EQ(FormatShare(5, 0), "-");
  EXPECT_EQ(FormatShare(INT64_MAX, INT64_MAX), "100.0 %");
  EXPECT_EQ(FormatShare(INT64_MIN, INT64_MAX), "-100.0 %");
}

TEST(Text, DurationsAreReadWithTheirUnit) {
  EXPECT_EQ(ParseDuration("300ms"), 300'000'000);
  EXPECT_EQ(ParseDuration("1.5s"), 1'500'000'000);
  EXPECT_EQ(ParseDuration("2m"), 120'000'000'000);
  EXPECT_EQ(ParseDuration("2min"), 120'000'000'000);
  EXPECT_EQ(ParseDuration("7us"), 7000);
  EXPECT_EQ(ParseDuration("7\xc2\xb5s"), 7000);
  EXPECT_EQ(ParseDuration("9ns"), 9);
  EXPECT_EQ(ParseDuration("1h"), 3'600'000'000'000);
  for (const char* bad : {"", "5", "ms", "5 ms", "fast", "1e300s", "nans", "5xs"}) {
    EXPECT_FALSE(ParseDuration(bad).has_value()) << bad;
  }
}

TEST(Text, NumbersAreReadWholeOrNotAtAll) {
  EXPECT_EQ(ParseUnsigned("42"), 42u);
  for (const char* bad : {"", "-1", "4x", " 4", "99999999999999999999"}) {
    EXPECT_FALSE(ParseUnsigned(bad).has_value()) << bad;
  }
  EXPECT_EQ(ParseDouble("0.25"), 0.25);
  for (const char* bad : {"", "x", "1.5y", "inf", "nan"}) {
    EXPECT_FALSE(ParseDouble(bad).has_value()) << bad;
  }
}

TEST(Text, NearestFindsTyposButNotStrangers) {
  const std::array<std::string_view, 4> names = {"corpus", "export", "info", "synth"};
  EXPECT_EQ(Nearest("infoo", names), "info");
  EXPECT_EQ(Nearest("copus", names), "corpus");
  EXPECT_EQ(Nearest("exp", names), "export");
  EXPECT_EQ(Nearest("snyth", names), "synth");
  EXPECT_FALSE(Nearest("zzzzzz", names).has_value());
  EXPECT_FALSE(Nearest("", names).has_value());
}

}  // namespace
}  // namespace culprit::TEST_FILE
