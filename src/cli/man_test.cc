// SPDX-License-Identifier: Apache-2.0
#include "cli/man.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/buffer_output.h"
#include "cli/run.h"
#include "cli/shell_run.h"

namespace culprit::cli::TEST_FILE {
namespace {

Command Hostile() {
  return {.name = "corpus odd",
          .summary = ".starts with a dot \\n and it's \"quoted\"",
          .operands = "FILE",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"culprit corpus odd 'a\\b' --x ~/^`", "'tis first"}},
          .flags = {{.name = "--dotted", .letter = 'd', .help = ".help with \\fBtroff\\fR in it"},
                    {.name = "--wide", .kind = ValueKind::kText, .value = "…é", .help = "日本"}},
          .details = ".TH not a macro\n\n'nor this\n\n  .SH kept\n   two  spaces\n"};
}

// What a reader sees: plain text without filling marks.
std::string Rendered(const std::string& page) {
  TemporaryFolder folder;
  EXPECT_TRUE(WriteWholeFile(folder / "page.1", page, Overwrite::kRefuse).ok());
  return RunShell("groff -man -ww -Tutf8 -P-c -P-b -P-u " + (folder / "page.1")).text;
}

TEST(TroffText, EscapesWhatTroffWouldRead) {
  EXPECT_EQ(TroffText("--seed a\\b"), "\\-\\-seed a\\eb");
  EXPECT_EQ(TroffText(".dot"), "\\&.dot");
  EXPECT_EQ(TroffText("'quote"), "\\&\\(aqquote");
  EXPECT_EQ(TroffText("a.b"), "a.b");
  EXPECT_EQ(TroffText("~^`\""), "\\(ti\\(ha\\(ga\\(dq");
  EXPECT_EQ(TroffText("é…😀"), "\\[u00E9]\\[u2026]\\[u1F600]");
  EXPECT_EQ(TroffText("a\nb"), "a?b");
}

TEST(ManPageName, JoinsWordsByHyphens) {
  EXPECT_EQ(ManPageName("corpus add"), "culprit-corpus-add");
  EXPECT_EQ(ManPageName("info"), "culprit-info");
  EXPECT_EQ(ManPageName(""), "culprit");
}

TEST(ManPage, RendersHostileTextAsWritten) {
  if (!HasProgram("groff")) GTEST_SKIP() << "groff is not installed";
  const std::string text = Rendered(ManPage(Hostile(), "1.2.3"));
  EXPECT_EQ(text.find("warning"), std::string::npos) << text;
  for (const char* expected :
       {"culprit-corpus-odd - .starts with a dot \\n and it's \"quoted\"",
        "culprit corpus odd 'a\\b' --x ~/^`", "'tis first", ".help with \\fBtroff\\fR in it",
        "-d, --dotted", "--wide …é", "日本", ".TH not a macro", "'nor this", ".SH kept",
        "two  spaces", "culprit 1.2.3"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(ManPage, OfEveryCommandPassesGroffWithoutAWarning) {
  if (!HasProgram("groff")) GTEST_SKIP() << "groff is not installed";
  TemporaryFolder folder;
  BufferOutput output;
  ASSERT_EQ(RunCulprit({"man", "--into", folder.path() + "/man1"}, output), 0) << output.err();
  size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "man1")) {
    ++pages;
    const auto outcome = RunShell("groff -man -ww -Tutf8 " + entry.path().string() + " >/dev/null");
    EXPECT_EQ(outcome.text, "") << entry.path();
    EXPECT_EQ(outcome.code, 0);
  }
  EXPECT_EQ(pages, Commands().size() + 1);
}

TEST(ManPage, HasEveryFlagOfEveryCommand) {
  for (const Command& command : Commands()) {
    const std::string page = ManPage(command, "0");
    for (const Flag& flag : command.flags) {
      EXPECT_NE(page.find(TroffText(flag.name)), std::string::npos)
          << command.name << " " << flag.name;
    }
  }
}

TEST(ManCommand, PrintsOnePage) {
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"man", "man"}, output), 0);
  EXPECT_TRUE(output.out().starts_with(".TH CULPRIT\\-MAN 1 ")) << output.out();
  BufferOutput overview;
  EXPECT_EQ(RunCulprit({"man"}, overview), 0);
  EXPECT_TRUE(overview.out().starts_with(".TH CULPRIT 1 "));
  for (const Command& command : Commands()) {
    EXPECT_NE(overview.out().find(TroffText(ManPageName(command.name)) + "\\fR(1)"),
              std::string::npos);
  }
}

TEST(ManCommand, SuggestsACommandForAWrongName) {
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"man", "infoo"}, output), 1);
  EXPECT_EQ(output.err(),
            "culprit: 'infoo' is not a command; did you mean 'info'?\n"
            "  hint: culprit --help lists the commands\n");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
