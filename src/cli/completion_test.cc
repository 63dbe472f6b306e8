// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/help.h"
#include "cli/run.h"
#include "cli/shell_run.h"

namespace culprit::cli::TEST_FILE {
namespace {

std::vector<Command> Table() {
  return {{.name = "corpus add",
           .summary = "add traces",
           .operands = "CORPUS TRACE...",
           .min_operands = 2,
           .max_operands = SIZE_MAX,
           .examples = {},
           .flags = {{.name = "--label", .kind = ValueKind::kText, .value = "K=V"}}},
          {.name = "corpus list",
           .summary = "it's a list",
           .operands = "CORPUS",
           .min_operands = 1,
           .max_operands = 1,
           .examples = {},
           .flags = {{.name = "--json"}}},
          {.name = "export",
           .summary = "write: elsewhere",
           .operands = "TRACE",
           .min_operands = 1,
           .max_operands = 1,
           .examples = {},
           .flags = {{.name = "--to", .kind = ValueKind::kChoice, .choices = {"json", "folded"}},
                     {.name = "--output", .letter = 'o', .kind = ValueKind::kPath, .value = "FILE"},
                     {.name = "--threads", .help = "[a] it's \\ b"}}},
          {.name = "help",
           .summary = "help",
           .operands = "[COMMAND]",
           .min_operands = 0,
           .max_operands = 2,
           .examples = {},
           .flags = {}},
          {.name = "completion",
           .summary = "scripts",
           .operands = "bash|zsh|fish",
           .min_operands = 1,
           .max_operands = 1,
           .examples = {},
           .flags = {}}};
}

class BashCompletionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasProgram("bash")) GTEST_SKIP() << "bash is not installed";
    ASSERT_TRUE(
        WriteWholeFile(folder_ / "culprit.bash", BashCompletion(Table()), Overwrite::kRefuse).ok());
    for (const char* name : {"one.ctrace", "only two.ctrace", "three.json"}) {
      ASSERT_TRUE(WriteWholeFile(folder_ / name, "", Overwrite::kRefuse).ok());
    }
  }

  // What bash offers after these words, of which the last is being typed.
  std::vector<std::string> Offered(const std::vector<std::string>& words) {
    std::string script = "cd '" + folder_.path() + "'; source ./culprit.bash; COMP_WORDS=(culprit";
    for (const std::string& word : words) script += " '" + word + "'";
    script += "); COMP_CWORD=" + std::to_string(words.size()) +
              "; _culprit; for w in \"${COMPREPLY[@]}\"; do echo \"$w\"; done | LC_ALL=C sort\n";
    EXPECT_TRUE(WriteWholeFile(folder_ / "drive.bash", script, Overwrite::kAllow).ok());
    std::istringstream in(RunShell("bash --norc '" + (folder_ / "drive.bash") + "'").text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  TemporaryFolder folder_;
};

using Words = std::vector<std::string>;

TEST_F(BashCompletionTest, ScriptHasNoSyntaxError) {
  const auto outcome = RunShell("bash -n '" + (folder_ / "culprit.bash") + "'");
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.code, 0);
}

TEST_F(BashCompletionTest, OffersCommandsAndTheWordsOfGroups) {
  EXPECT_EQ(Offered({""}),
            (Words{"--help", "--version", "completion", "corpus", "export", "help"}));
  EXPECT_EQ(Offered({"co"}), (Words{"completion", "corpus"}));
  EXPECT_EQ(Offered({"corpus", ""}), (Words{"add", "list"}));
  EXPECT_EQ(Offered({"corpus", "l"}), (Words{"list"}));
}

TEST_F(BashCompletionTest, OffersTheFlagsOfTheCommand) {
  EXPECT_EQ(Offered({"corpus", "add", "--"}), (Words{"--help", "--label"}));
  EXPECT_EQ(Offered({"corpus", "list", "x", "--j"}), (Words{"--json"}));
  EXPECT_EQ(Offered({"export", "one.ctrace", "--t"}), (Words{"--threads", "--to"}));
}

TEST_F(BashCompletionTest, OffersChoicesForTheirFlagInBothForms) {
  EXPECT_EQ(Offered({"export", "--to", ""}), (Words{"folded", "json"}));
  EXPECT_EQ(Offered({"export", "--to", "j"}), (Words{"json"}));
  EXPECT_EQ(Offered({"export", "--to", "="}), (Words{"folded", "json"}));
  EXPECT_EQ(Offered({"export", "--to", "=", "f"}), (Words{"folded"}));
}

TEST_F(BashCompletionTest, OffersFilesForPathsAndOperands) {
  EXPECT_EQ(Offered({"export", "-o", "t"}), (Words{"three.json"}));
  EXPECT_EQ(Offered({"export", "--output", "=", "on"}), (Words{"one.ctrace", "only two.ctrace"}));
  EXPECT_EQ(Offered({"corpus", "add", "o"}), (Words{"one.ctrace", "only two.ctrace"}));
}

TEST_F(BashCompletionTest, OffersNothingWhereOnlyTheUserKnows) {
  EXPECT_EQ(Offered({"corpus", "add", "--label", "o"}), Words{});
  EXPECT_EQ(Offered({"unknown", "o"}), Words{});
}

TEST_F(BashCompletionTest, OffersTheOperandsTheTableNames) {
  EXPECT_EQ(Offered({"completion", ""}), (Words{"bash", "fish", "zsh"}));
  EXPECT_EQ(Offered({"help", "e"}), (Words{"export"}));
}

TEST(BashCompletion, OfTheRealTableCompletesEveryFlag) {
  if (!HasProgram("bash")) GTEST_SKIP() << "bash is not installed";
  TemporaryFolder folder;
  std::string script = BashCompletion(Commands());
  std::string expected;
  for (const Command& command : Commands()) {
    const int words = GroupOf(command).empty() ? 2 : 3;
    for (const Flag& flag : command.flags) {
      script += "COMP_WORDS=(culprit " + std::string(command.name) + " " + std::string(flag.name) +
                "); COMP_CWORD=" + std::to_string(words) +
                "; _culprit; [[ \" ${COMPREPLY[*]} \" == *' " + std::string(flag.name) +
                " '* ]] && echo ok\n";
      expected += "ok\n";
    }
  }
  ASSERT_TRUE(WriteWholeFile(folder / "all.bash", script, Overwrite::kRefuse).ok());
  EXPECT_EQ(RunShell("bash --norc '" + (folder / "all.bash") + "'").text, expected);
}

TEST(ZshCompletion, DescribesCommandsFlagsAndValues) {
  const std::string text = ZshCompletion(Table());
  for (const char* expected :
       {"#compdef culprit", "'export:write: elsewhere'", "'list:it'\\''s a list'",
        "'*--to=[]:value:(json folded)'", "'*-o+[]:FILE:_files'",
        "'*--threads[\\[a\\] it'\\''s \\\\ b]'", "'*:operand:(bash zsh fish)'", "'corpus add')"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(ZshCompletion, PassesTheShellsOwnCheck) {
  if (!HasProgram("zsh")) GTEST_SKIP() << "zsh is not installed";
  TemporaryFolder folder;
  ASSERT_TRUE(
      WriteWholeFile(folder / "_culprit", ZshCompletion(Commands()), Overwrite::kRefuse).ok());
  EXPECT_EQ(RunShell("zsh -n '" + (folder / "_culprit") + "'").text, "");
}

TEST(FishCompletion, DescribesCommandsFlagsAndValues) {
  const std::string text = FishCompletion(Table());
  for (const char* expected :
       {"-n __fish_use_subcommand -a export -d 'write: elsewhere'", "-a list -d 'it\\'s a list'",
        "-l to -x -a 'json folded'", "-l output -s o -r -F", "-l threads -d '[a] it\\'s \\\\ b'",
        "-a 'bash zsh fish'",
        "'__fish_seen_subcommand_from corpus; and __fish_seen_subcommand_from add' -l label -x"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(FishCompletion, OffersWhatTheTableSays) {
  if (!HasProgram("fish")) GTEST_SKIP() << "fish is not installed";
  TemporaryFolder folder;
  ASSERT_TRUE(
      WriteWholeFile(folder / "culprit.fish", FishCompletion(Table()), Overwrite::kRefuse).ok());
  const auto offered = [&](const std::string& line) {
    return RunShell("fish --no-config -c \"source '" + (folder / "culprit.fish") +
                    "'; complete -C '" + line + "'\" | cut -f1 | LC_ALL=C sort | tr '\\n' ' '")
        .text;
  };
  EXPECT_EQ(offered("culprit co"), "completion corpus ");
  EXPECT_EQ(offered("culprit corpus "), "add list ");
  EXPECT_EQ(offered("culprit export --t"), "--threads --to ");
  EXPECT_EQ(offered("culprit export --to "), "folded json ");
  EXPECT_EQ(offered("culprit completion "), "bash fish zsh ");
}

TEST(CompletionCommand, PrintsTheScriptOfTheShellAsked) {
  for (const auto& [shell, script] :
       std::map<std::string, std::string>{{"bash", BashCompletion(Commands())},
                                          {"zsh", ZshCompletion(Commands())},
                                          {"fish", FishCompletion(Commands())}}) {
    BufferOutput output;
    EXPECT_EQ(RunCulprit({"completion", shell}, output), 0);
    EXPECT_EQ(output.out(), script);
  }
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"completion", "tcsh"}, output), 1);
  EXPECT_EQ(output.out(), "");
  EXPECT_EQ(output.err(),
            "culprit: there is no completion for the shell 'tcsh'\n"
            "  hint: the shells are bash, zsh and fish\n");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
