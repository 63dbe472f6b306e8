// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/buffer_output.h"
#include "cli/help.h"

namespace culprit::cli::TEST_FILE {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome RunWords(const std::vector<std::string>& words) {
  BufferOutput output;
  const int code = RunCulprit(words, output);
  return {code, output.out(), output.err()};
}

TEST(RunCulprit, WithoutWordsShowsTheOverviewAsAnError) {
  const Outcome outcome = RunWords({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, OverviewText(Commands(), 100));
}

TEST(RunCulprit, ShowsTheOverviewWhenAskedFor) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"help"}}) {
    const Outcome outcome = RunWords(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, OverviewText(Commands(), 100));
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(RunCulprit, SaysItsVersion) {
  const Outcome outcome = RunWords({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "culprit " + std::string(Version()) + "\n");
  EXPECT_EQ(std::count(Version().begin(), Version().end(), '.'), 2) << Version();
}

TEST(RunCulprit, HelpOfACommandIsTheSameInEveryForm) {
  for (const Command& command : Commands()) {
    std::vector<std::string> name;
    if (!GroupOf(command).empty()) name.emplace_back(GroupOf(command));
    name.emplace_back(command.name.substr(command.name.find(' ') + 1));
    const auto with = [&](std::vector<std::string> before, std::vector<std::string> after) {
      before.insert(before.end(), name.begin(), name.end());
      before.insert(before.end(), after.begin(), after.end());
      return before;
    };
    for (const auto& words : {with({}, {"--help"}), with({}, {"-h"}), with({"help"}, {}),
                              with({}, {"--unknown", "x", "y", "z", "--help"})}) {
      const Outcome outcome = RunWords(words);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(outcome.out, HelpText(command, 100));
    }
  }
}

TEST(RunCulprit, AfterTwoDashesHelpIsAnOperand) {
  EXPECT_EQ(RunWords({"completion", "--", "--help"}).code, 1);
}

TEST(RunCulprit, AnUnknownCommandIsAnsweredWithTheNearest) {
  const Outcome outcome = RunWords({"infoo", "x"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "culprit: 'infoo' is not a command; did you mean 'info'?\n"
            "  hint: culprit --help lists the commands\n");
  EXPECT_EQ(RunWords({"qqqqqqqqq"}).err,
            "culprit: 'qqqqqqqqq' is not a command\n"
            "  hint: culprit --help lists the commands\n");
  EXPECT_EQ(RunWords({""}).code, 2);
}

TEST(RunCulprit, AnUnknownFlagBeforeTheCommandIsRefused) {
  const Outcome outcome = RunWords({"--versoin"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("did you mean '--version'?"), std::string::npos);
}

TEST(RunCulprit, AGroupAloneShowsItsCommands) {
  const Outcome alone = RunWords({"corpus"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.out, "");
  EXPECT_EQ(alone.err, GroupText(Commands(), "corpus", 100));
  const Outcome help = RunWords({"corpus", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out, alone.err);
  EXPECT_EQ(RunWords({"help", "corpus"}).out, alone.err);
  const Outcome wrong = RunWords({"corpus", "ad"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("'corpus ad' is not a command; did you mean 'corpus add'?"),
            std::string::npos);
}

TEST(RunCulprit, AWrongCommandLineIsCodeTwoAFailedOperationCodeOne) {
  EXPECT_EQ(RunWords({"export", "t"}).code, 2);
  EXPECT_EQ(RunWords({"export", "--too", "json", "t"}).code, 2);
  const Outcome failed = RunWords({"export", "/nonexistent/t", "--to", "json"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err, "culprit: /nonexistent/t: cannot open: No such file or directory\n");
}

TEST(PrintError, HasFileOffsetAndHint) {
  BufferOutput output;
  PrintError({.message = "is torn", .file = "t", .offset = 17, .hint = "glue it"}, output);
  EXPECT_EQ(output.err(), "culprit: t: is torn (at byte 17)\n  hint: glue it\n");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
