// SPDX-License-Identifier: Apache-2.0
#include "import/trace_mark.h"

#include <gtest/gtest.h>

#include "trace/trace_writer.h"

namespace culprit::import_::TEST_FILE {
namespace {

TEST(TraceMark, ReadsTheFourPhases) {
  const auto begin = ParseTraceMark("B|123|draw frame\n");
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(begin->phase, 'B');
  EXPECT_EQ(begin->pid, 123);
  EXPECT_EQ(begin->name, "draw frame");
  EXPECT_EQ(ParseTraceMark("E")->phase, 'E');
  EXPECT_EQ(ParseTraceMark("E|123\n")->pid, 123);
  const auto start = ParseTraceMark("S|5|a|b|77");
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->name, "a|b");
  EXPECT_EQ(start->cookie, "77");
}

TEST(TraceMark, RefusesOtherTexts) {
  for (const std::string_view text :
       {"", "B", "B|", "B|x|y", "B|5|", "C|5|counter|3", "Begin", "S|5|name", "hello", "EEE"}) {
    EXPECT_FALSE(ParseTraceMark(text).has_value()) << text;
  }
}

TEST(TraceMark, AsynchronousMarksAreInstances) {
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) -> Status {
    bytes.append(part);
    return {};
  });
  assemble::Assembler assembler(writer);
  Diagnostics diagnostics;
  TraceMarks marks(assembler, diagnostics);
  EXPECT_TRUE(marks.Feed(100, 7, "S|5|load|1", 0).value());
  EXPECT_TRUE(marks.Feed(150, 7, "S|5|load|2", 0).value());
  EXPECT_TRUE(marks.Feed(300, 8, "F|5|load|1", 0).value());
  EXPECT_TRUE(marks.Feed(310, 8, "F|5|load|9", 77).value());
  EXPECT_FALSE(marks.Feed(320, 8, "plain text", 0).value());
  ASSERT_TRUE(assembler.Finish().ok());
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_EQ(diagnostics.rows().size(), 1u);
  EXPECT_EQ(diagnostics.rows().begin()->second.first_offset, 77u);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
