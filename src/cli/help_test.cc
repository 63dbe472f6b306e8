// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "report/plain_text.h"

namespace culprit::cli::TEST_FILE {
namespace {

Command Sample() {
  return {.name = "corpus add",
          .summary = "put traces into a corpus",
          .operands = "CORPUS TRACE...",
          .min_operands = 2,
          .max_operands = SIZE_MAX,
          .examples = {{"culprit corpus add c t.ctrace", "one trace"}},
          .flags = {{.name = "--label",
                     .letter = 'l',
                     .kind = ValueKind::kText,
                     .value = "K=V",
                     .help = "a label for all of them"},
                    {.name = "--jobs",
                     .kind = ValueKind::kNumber,
                     .value = "N",
                     .help = "threads to use",
                     .default_text = "2"},
                    {.name = "--to",
                     .kind = ValueKind::kChoice,
                     .help = "the format",
                     .choices = {"json", "text"},
                     .required = true}},
          .details = "First paragraph\nwith two lines.\n\n  kept   as it is\n\nLast."};
}

TEST(HelpText, HasExamplesFirstThenUsageFlagsAndDetails) {
  EXPECT_EQ(HelpText(Sample()),
            "culprit corpus add: put traces into a corpus\n"
            "\n"
            "Examples:\n"
            "  culprit corpus add c t.ctrace  one trace\n"
            "\n"
            "Usage:\n"
            "  culprit corpus add CORPUS TRACE... --to json|text [flags]\n"
            "\n"
            "Flags:\n"
            "  -l, --label K=V     a label for all of them\n"
            "      --jobs N        threads to use [default: 2]\n"
            "      --to json|text  the format (required)\n"
            "  -h, --help          show this help\n"
            "\n"
            "First paragraph with two lines.\n"
            "\n"
            "  kept   as it is\n"
            "\n"
            "Last.\n");
}

TEST(HelpText, OfEveryCommandNamesAllItsFlagsExamplesAndDefaults) {
  for (const Command& command : Commands()) {
    const std::string text = HelpText(command);
    SCOPED_TRACE(command.name);
    EXPECT_NE(text.find(command.summary.substr(0, 20)), std::string::npos);
    for (const Flag& flag : command.flags) {
      EXPECT_NE(text.find(FlagForm(flag)), std::string::npos) << flag.name;
      EXPECT_FALSE(flag.help.empty()) << flag.name;
    }
    for (const Example& example : command.examples) {
      EXPECT_NE(text.find(example.command), std::string::npos);
    }
    EXPECT_LT(text.find("Examples:"), text.find("Usage:"));
  }
}

TEST(HelpText, IsFilledToTheWidth) {
  Command command = Sample();
  const std::string long_help = "word word word word word word word word word word word word word";
  command.flags[0].help = long_help;
  command.details = long_help;
  for (size_t width : {50, 60, 80, 100}) {
    std::istringstream in(HelpText(command, width));
    for (std::string line; std::getline(in, line);) {
      if (line.find("culprit") != std::string::npos) continue;
      EXPECT_LE(report::CodePoints(line), width);
    }
  }
}

TEST(CommandTable, IsWellFormed) {
  std::set<std::string_view> names;
  for (const Command& command : Commands()) {
    SCOPED_TRACE(command.name);
    EXPECT_TRUE(names.insert(command.name).second) << "twice";
    EXPECT_FALSE(command.summary.empty());
    EXPECT_FALSE(command.summary.ends_with('.'));
    EXPECT_FALSE(command.examples.empty());
    EXPECT_NE(command.run, nullptr);
    EXPECT_LE(command.min_operands, command.max_operands);
    EXPECT_EQ(command.operands.empty(), command.max_operands == 0);
    std::set<std::string_view> flags = {"--help"};
    std::set<char> letters = {'h'};
    for (const Flag& flag : command.flags) {
      EXPECT_TRUE(flag.name.starts_with("--")) << flag.name;
      EXPECT_TRUE(flags.insert(flag.name).second) << flag.name;
      EXPECT_FALSE(flag.help.ends_with('.')) << flag.name;
      EXPECT_EQ(flag.kind == ValueKind::kChoice, !flag.choices.empty()) << flag.name;
      if (flag.letter == 0) continue;
      EXPECT_TRUE(letters.insert(flag.letter).second) << flag.name;
    }
    EXPECT_EQ(FindCommand(command.name), &command);
  }
}

TEST(CommandTable, ExamplesOfCulpritParse) {
  for (const Command& command : Commands()) {
    for (const Example& example : command.examples) {
      std::string line(example.command);
      const std::string start = "culprit " + std::string(command.name);
      if (!line.starts_with(start)) continue;
      line = line.substr(0, std::min({line.find(" | "), line.find(" > "), line.find(" && ")}));
      if (line.find_first_of("'\"$(") != std::string::npos) continue;
      std::istringstream in(line.substr(start.size()));
      std::vector<std::string> words;
      for (std::string word; in >> word;) words.push_back(word);
      const auto parsed = ParseArguments(command, words);
      EXPECT_TRUE(parsed.ok()) << line << ": " << (parsed.ok() ? "" : parsed.error().message);
    }
  }
}

TEST(OverviewText, ListsEveryCommandAfterTheExamples) {
  const std::string text = OverviewText(Commands());
  EXPECT_LT(text.find("culprit synth --like demo -o c"), text.find("Commands:"));
  EXPECT_LT(text.find("culprit info c"), text.find("Commands:"));
  for (const Command& command : Commands()) {
    EXPECT_NE(text.find("\n  " + std::string(command.name) + " "), std::string::npos)
        << command.name;
  }
}

TEST(GroupText, ListsOnlyTheGroup) {
  Command other = Sample();
  other.name = "info";
  other.summary = "something else";
  const std::string text = GroupText({Sample(), other}, "corpus");
  EXPECT_NE(text.find("put traces into a corpus"), std::string::npos);
  EXPECT_EQ(text.find("something else"), std::string::npos);
}

TEST(Paragraphs, PartAtEmptyLinesAndAtIndentedText) {
  const auto paragraphs = Paragraphs("a\nb\n  code\n  more\nc\n\n\nd");
  ASSERT_EQ(paragraphs.size(), 4u);
  EXPECT_EQ(paragraphs[0].text, "a\nb");
  EXPECT_EQ(paragraphs[1].text, "  code\n  more");
  EXPECT_TRUE(paragraphs[1].verbatim);
  EXPECT_EQ(paragraphs[2].text, "c");
  EXPECT_EQ(paragraphs[3].text, "d");
  EXPECT_TRUE(Paragraphs("").empty());
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
