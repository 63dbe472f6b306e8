// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "report/plain_text.h"

namespace culprit::report::TEST_FILE {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Table, AlignsColumnsUnderTheirHeaders) {
  Table table;
  table.Column("scenario").Column("p50", Table::Align::kRight).Column("note");
  table.Row({"TabCreate", "12.5 ms", "ok"}).Row({"Nav", "1 s"});
  EXPECT_EQ(table.ToText(80),
            "scenario       p50  note\n"
            "TabCreate  12.5 ms  ok\n"
            "Nav            1 s\n");
}

TEST(Table, WithoutRowsIsItsHeader) {
  EXPECT_EQ(Table().Column("a").Column("b").ToText(80), "a  b\n");
}

TEST(Table, MeasuresCharactersNotBytes) {
  Table table;
  table.Column("name").Column("n", Table::Align::kRight);
  table.Row({"überall", "1"}).Row({"everyone", "22"});
  EXPECT_EQ(table.ToText(80),
            "name       n\n"
            "überall    1\n"
            "everyone  22\n");
}

TEST(Table, CutsTheFlexibleColumnInTheMiddleToFitTheWidth) {
  Table table;
  table.Column("function", Table::Align::kLeft, true).Column("ms", Table::Align::kRight);
  table.Row({"abcdefghijklmnopqrstuvwxyz", "123"}).Row({"short", "4"});
  EXPECT_EQ(table.ToText(20),
            "function          ms\n"
            "abcdefg…tuvwxyz  123\n"
            "short              4\n");
}

TEST(Table, FitsEveryWidthDownToTheMinimum) {
  Table table;
  table.Column("f", Table::Align::kLeft, true).Column("ms", Table::Align::kRight);
  table.Row({std::string(50, 'x') + "é日😀" + std::string(50, 'y'), "1"});
  for (size_t width = Table::kMinimumFlexible + 4; width < 120; ++width) {
    for (const std::string& line : Lines(table.ToText(width))) {
      ASSERT_LE(CodePoints(line), width);
      ASSERT_EQ(PlainText(line), line) << "cut inside a character";
    }
  }
  EXPECT_EQ(CodePoints(Lines(table.ToText(3))[1]), Table::kMinimumFlexible + 4);
}

TEST(Table, WithoutAFlexibleColumnIsNeverCut) {
  Table table;
  table.Column("a").Row({std::string(40, 'x')});
  EXPECT_EQ(table.ToText(10), "a\n" + std::string(40, 'x') + "\n");
  EXPECT_EQ(table.ToText(0), table.ToText(10));
}

TEST(Table, HostileCellsCannotBreakTheLayout) {
  Table table;
  table.Column("a").Column("b");
  table.Row({"x\ny\x1b[2J", "\xff"});
  EXPECT_EQ(table.ToText(80), "a        b\nx?y?[2J  \uFFFD\n");
}

TEST(Table, ColorMakesOnlyTheHeaderBold) {
  Table table;
  table.Column("a").Row({"x"});
  EXPECT_EQ(table.ToText(80, true), "\033[1ma\033[0m\nx\n");
}

TEST(TableDeathTest, MoreCellsThanColumnsIsABug) {
  EXPECT_DEATH(Table().Column("a").Row({"1", "2"}), "cells.size");
}

TEST(TableDeathTest, TwoFlexibleColumnsAreABug) {
  EXPECT_DEATH(
      Table().Column("a", Table::Align::kLeft, true).Column("b", Table::Align::kLeft, true),
      "flexible");
}

TEST(ShareBar, IsAsLongAsTheShare) {
  EXPECT_EQ(ShareBar(1, 1, 4), "████");
  EXPECT_EQ(ShareBar(1, 2, 4), "██");
  EXPECT_EQ(ShareBar(3, 8, 4), "█▌");
  EXPECT_EQ(ShareBar(5, 1, 4), "████");
}

TEST(ShareBar, ShowsTheSmallestShareButNotNone) {
  EXPECT_EQ(ShareBar(1, 1'000'000, 4), "▏");
  EXPECT_EQ(ShareBar(0, 10, 4), "");
  EXPECT_EQ(ShareBar(-1, 10, 4), "");
  EXPECT_EQ(ShareBar(1, 0, 4), "");
}

TEST(ShareBar, NeverShrinksWhenThePartGrows) {
  size_t last = 0;
  for (int64_t part = 0; part <= 1000; ++part) {
    const std::string bar = ShareBar(part, 1000, 10);
    ASSERT_LE(CodePoints(bar), 10u);
    ASSERT_GE(CodePoints(bar), last);
    last = CodePoints(bar);
  }
  EXPECT_EQ(last, 10u);
}

TEST(Heading, IsOneLine) {
  EXPECT_EQ(Heading("Where the time went", false), "Where the time went\n");
  EXPECT_EQ(Heading("a\nb", true), "\033[1ma?b\033[0m\n");
}

TEST(Facts, AlignsValuesBehindTheLongestKey) {
  EXPECT_EQ(Facts({{"traces", "40"}, {"wall time", "3 s"}, {"é", ""}}, false),
            "  traces     40\n"
            "  wall time  3 s\n"
            "  é\n");
  EXPECT_EQ(Facts({{"a", "b"}}, true), "  \033[2ma\033[0m  b\n");
  EXPECT_EQ(Facts({}, true), "");
}

TEST(Note, IsDimWithColor) {
  EXPECT_EQ(Note("skipped 2", false), "skipped 2\n");
  EXPECT_EQ(Note("skipped 2", true), "\033[2mskipped 2\033[0m\n");
}

}  // namespace
}  // namespace culprit::report::TEST_FILE
