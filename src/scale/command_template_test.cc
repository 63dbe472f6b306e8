// SPDX-License-Identifier: Apache-2.0
#include "scale/command_template.h"

#include <gtest/gtest.h>

#include "base/program.h"

namespace culprit::scale::TEST_FILE {
namespace {

using Words = std::vector<std::string>;

TemplateValues SomeValues() {
  return {.program = "/opt/culprit",
          .verb = Verb::kReduce,
          .run = "/shared/run",
          .index = 17,
          .indexes = "3-5,17",
          .slot = 2,
          .host = "beta"};
}

Words Filled(std::string_view text) {
  const Result<CommandTemplate> command = CommandTemplate::Parse(text);
  EXPECT_TRUE(command.ok()) << text;
  return command.ok() ? command.value().Fill(SomeValues()) : Words();
}

std::string ErrorOf(std::string_view text) {
  const Result<CommandTemplate> command = CommandTemplate::Parse(text);
  EXPECT_FALSE(command.ok()) << text;
  return command.ok() ? "" : command.error().message;
}

TEST(CommandTemplate, FillsEveryPlaceholder) {
  EXPECT_EQ(Filled("x {index} {verb} {run} {program} {slot} {host}"),
            (Words{"x", "17", "reduce", "/shared/run", "/opt/culprit", "2", "beta"}));
  EXPECT_EQ(Filled("x {indexes}"), (Words{"x", "3-5,17"}));
  EXPECT_EQ(Filled("ssh worker-{slot}.example {command}"),
            (Words{"ssh", "worker-2.example", "/opt/culprit shard reduce /shared/run 17"}));
}

TEST(CommandTemplate, CutsWordsAsAShellDoes) {
  EXPECT_EQ(Filled("a 'b c'\t\"d 'e\" f\\ g '' {index}"),
            (Words{"a", "b c", "d 'e", "f g", "", "17"}));
  EXPECT_EQ(Filled("awk '{{print $1}}' {index}"), (Words{"awk", "{print $1}", "17"}));
}

TEST(CommandTemplate, RefusesWhatCannotWork) {
  EXPECT_NE(ErrorOf("ssh 'a {command}").find("quote"), std::string::npos);
  EXPECT_NE(ErrorOf("").find("empty"), std::string::npos);
  EXPECT_NE(ErrorOf("ssh {hosts} {command}").find("did you mean {host}?"), std::string::npos);
  EXPECT_NE(ErrorOf("ssh {host} {command").find("no placeholder"), std::string::npos);
  EXPECT_NE(ErrorOf("ssh host} {command}").find("without its"), std::string::npos);
  EXPECT_NE(ErrorOf("ssh {host} culprit").find("which task"), std::string::npos);
  EXPECT_NE(ErrorOf("submit {indexes} {index}").find("for all tasks"), std::string::npos);
}

// A shell at the other end, as ssh has it, must see the words that were meant.
TEST(CommandTemplate, CommandSurvivesAShell) {
  for (const std::string run :
       {"/a b", "/it's", "/$(touch x)`id`", "/a\"b\\c", "/new\nline", "*"}) {
    TemplateValues values = SomeValues();
    values.program = "/bin/echo";
    values.run = run;
    const auto command = CommandTemplate::Parse("sh -c {command}");
    ASSERT_TRUE(command.ok());
    const auto printed = RunProgram(command.value().Fill(values), std::chrono::seconds(10));
    ASSERT_TRUE(printed.ok());
    EXPECT_EQ(printed.value().out, "shard reduce " + run + " 17\n");
  }
}

}  // namespace
}  // namespace culprit::scale::TEST_FILE
