// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/command.h"

namespace culprit::cli::TEST_FILE {
namespace {

Command Sample() {
  return {
      .name = "corpus sample",
      .summary = "a command with every kind of flag",
      .operands = "IN [OUT]",
      .min_operands = 1,
      .max_operands = 2,
      .examples = {},
      .flags = {
          {.name = "--seed", .kind = ValueKind::kNumber, .value = "N", .default_text = "7"},
          {.name = "--output", .letter = 'o', .kind = ValueKind::kPath, .value = "FILE"},
          {.name = "--label", .kind = ValueKind::kText, .value = "K=V"},
          {.name = "--scale", .kind = ValueKind::kReal, .value = "F", .default_text = "1"},
          {.name = "--dur", .kind = ValueKind::kDuration, .value = "TIME", .default_text = "2s"},
          {.name = "--to", .kind = ValueKind::kChoice, .choices = {"json", "folded"}},
          {.name = "--force", .letter = 'f'},
          {.name = "--verbose", .letter = 'v'}}};
}

class ArgumentsTest : public testing::Test {
 protected:
  Arguments Parse(const std::vector<std::string>& words) {
    auto result = ParseArguments(command_, words);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? result.value() : Arguments();
  }
  std::string Problem(const std::vector<std::string>& words) {
    const auto result = ParseArguments(command_, words);
    if (result.ok()) return "no error";
    EXPECT_EQ(result.error().hint, "culprit corpus sample --help shows what it takes");
    return result.error().message;
  }

  Command command_ = Sample();
};

TEST_F(ArgumentsTest, EveryFormOfAFlagGivesTheSame) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"in", "--output", "x"},
                                             {"in", "--output=x"},
                                             {"in", "-o", "x"},
                                             {"in", "-ox"},
                                             {"-ox", "in"},
                                             {"--output", "x", "--", "in"},
                                             {"-fo", "x", "in"},
                                             {"-fvox", "in"}}) {
    const Arguments arguments = Parse(words);
    EXPECT_EQ(arguments.Text("--output"), "x");
    EXPECT_EQ(arguments.operands(), std::vector<std::string>{"in"});
    EXPECT_TRUE(arguments.Has("--output"));
  }
}

TEST_F(ArgumentsTest, ValuesAreReadByTheirKind) {
  const Arguments a = Parse({"in", "--seed=18446744073709551615", "--scale", "0.25", "--dur",
                             "1.5s", "--to", "json", "--label", "app=x=y", "-f"});
  EXPECT_EQ(a.Number("--seed"), UINT64_MAX);
  EXPECT_DOUBLE_EQ(a.Real("--scale"), 0.25);
  EXPECT_EQ(a.DurationNs("--dur"), 1'500'000'000);
  EXPECT_EQ(a.Text("--to"), "json");
  EXPECT_EQ(a.Text("--label"), "app=x=y");
  EXPECT_TRUE(a.Has("--force"));
  EXPECT_FALSE(a.Has("--verbose"));
}

TEST_F(ArgumentsTest, AbsentFlagsGiveTheirDefaults) {
  const Arguments a = Parse({"in"});
  EXPECT_FALSE(a.Has("--seed"));
  EXPECT_EQ(a.Number("--seed"), 7u);
  EXPECT_DOUBLE_EQ(a.Real("--scale"), 1);
  EXPECT_EQ(a.DurationNs("--dur"), 2'000'000'000);
  EXPECT_EQ(a.Text("--output"), "");
  EXPECT_TRUE(a.All("--label").empty());
}

TEST_F(ArgumentsTest, OfARepeatedFlagTheLastCountsAndAllAreKept) {
  const Arguments a = Parse({"--label", "a=1", "in", "--label=b=2", "--seed", "1", "--seed", "2"});
  EXPECT_EQ(a.All("--label"), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_EQ(a.Text("--label"), "b=2");
  EXPECT_EQ(a.Number("--seed"), 2u);
}

TEST_F(ArgumentsTest, TwoDashesEndTheFlagsAndOneIsAnOperand) {
  EXPECT_EQ(Parse({"--", "--seed", "-f"}).operands(), (std::vector<std::string>{"--seed", "-f"}));
  EXPECT_EQ(Parse({"-", ""}).operands(), (std::vector<std::string>{"-", ""}));
}

TEST_F(ArgumentsTest, AWrongValueIsToldWithWhatWouldBeRight) {
  EXPECT_EQ(Problem({"in", "--seed", "x"}), "--seed takes a whole number, not 'x'");
  EXPECT_EQ(Problem({"in", "--seed", "-1"}), "--seed takes a whole number, not '-1'");
  EXPECT_EQ(Problem({"in", "--seed="}), "--seed takes a whole number, not ''");
  EXPECT_EQ(Problem({"in", "--seed=18446744073709551616"}),
            "--seed takes a whole number, not '18446744073709551616'");
  EXPECT_EQ(Problem({"in", "--scale", "big"}), "--scale takes a number, not 'big'");
  EXPECT_EQ(Problem({"in", "--scale=nan"}), "--scale takes a number, not 'nan'");
  EXPECT_EQ(Problem({"in", "--dur", "100"}),
            "--dur takes a time with its unit, such as 300ms or 1.5s, not '100'");
  EXPECT_EQ(Problem({"in", "--dur", "-5s"}),
            "--dur takes a time with its unit, such as 300ms or 1.5s, not '-5s'");
  EXPECT_EQ(Problem({"in", "--to", "jsn"}),
            "--to takes one of json, folded, not 'jsn'; did you mean 'json'?");
  EXPECT_EQ(Problem({"in", "-o", ""}), "-o takes a path, not ''");
  EXPECT_EQ(Problem({"in", "--force=yes"}), "--force takes no value");
}

TEST_F(ArgumentsTest, AnEarlierWrongValueIsNotHiddenByALaterRightOne) {
  EXPECT_EQ(Problem({"in", "--seed", "x", "--seed", "1"}), "--seed takes a whole number, not 'x'");
}

TEST_F(ArgumentsTest, AMissingValueDoesNotSwallowTheNextFlag) {
  EXPECT_EQ(Problem({"in", "--seed"}), "--seed needs a value: --seed N");
  EXPECT_EQ(Problem({"in", "-o"}), "-o needs a value: -o FILE");
  EXPECT_EQ(Problem({"in", "-o", "--force"}), "-o needs a value: -o FILE, and '--force' is a flag");
  EXPECT_EQ(Problem({"in", "-o", "--seed=3"}),
            "-o needs a value: -o FILE, and '--seed=3' is a flag");
  EXPECT_EQ(Parse({"in", "--output=--force"}).Text("--output"), "--force");
}

TEST_F(ArgumentsTest, AnUnknownFlagIsAnsweredWithTheNearest) {
  EXPECT_EQ(Problem({"in", "--sed", "1"}), "unknown flag '--sed'; did you mean '--seed'?");
  EXPECT_EQ(Problem({"in", "--sed=1"}), "unknown flag '--sed'; did you mean '--seed'?");
  EXPECT_EQ(Problem({"in", "--zzzzzzzzzz"}), "unknown flag '--zzzzzzzzzz'");
  EXPECT_EQ(Problem({"in", "-x"}), "unknown flag '-x'");
  EXPECT_EQ(Problem({"in", "-fx"}), "unknown flag '-x'");
}

TEST_F(ArgumentsTest, TheNumberOfOperandsIsChecked) {
  EXPECT_EQ(Problem({}), "nothing was named to work on: culprit corpus sample IN [OUT]");
  EXPECT_EQ(Problem({"a", "b", "c"}),
            "'c' is one operand too many: culprit corpus sample IN [OUT]");
  command_.min_operands = 2;
  EXPECT_EQ(Problem({"a"}), "not enough was named to work on: culprit corpus sample IN [OUT]");
  command_.min_operands = command_.max_operands = 0;
  EXPECT_EQ(Problem({"a"}), "culprit corpus sample takes no operands, and 'a' is one");
  command_.max_operands = SIZE_MAX;
  EXPECT_EQ(Parse(std::vector<std::string>(1000, "a")).operands().size(), 1000u);
}

TEST_F(ArgumentsTest, ARequiredFlagMustBeGiven) {
  command_.flags[5].required = true;
  EXPECT_EQ(Problem({"in"}), "culprit corpus sample needs --to, one of json, folded");
  EXPECT_EQ(Parse({"in", "--to", "json"}).Text("--to"), "json");
  command_.flags[5].required = false;
  command_.flags[1].required = true;
  EXPECT_EQ(Problem({"in"}), "culprit corpus sample needs --output FILE");
}

TEST_F(ArgumentsTest, AskingForAFlagTheCommandDoesNotHaveIsABug) {
  const Arguments a = Parse({"in"});
  EXPECT_DEATH(a.Text("--nothing"), "known != nullptr");
}

TEST(CommandTable, DefaultsFitTheKindsOfTheirFlags) {
  for (const Command& command : Commands()) {
    for (const Flag& flag : command.flags) {
      if (flag.default_text.empty()) continue;
      Command single = command;
      single.flags = {flag};
      single.min_operands = 0;
      const auto parsed =
          ParseArguments(single, {std::string(flag.name) + "=" + std::string(flag.default_text)});
      EXPECT_TRUE(parsed.ok()) << command.name << " " << flag.name;
    }
  }
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
