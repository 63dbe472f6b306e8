// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "cli/buffer_output.h"
#include "cli/run.h"

namespace culprit::cli::TEST_FILE {
namespace {

TEST(RecordCommand, NothingToRecordIsAnErrorThatSaysHow) {
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"record"}, output), 1);
  EXPECT_NE(output.err().find("nothing to record"), std::string::npos);
  EXPECT_NE(output.err().find("--system"), std::string::npos);
}

TEST(RecordCommand, WrongValuesAreErrors) {
  const std::vector<std::vector<std::string>> lines = {
      {"record", "--pid", "x"},
      {"record", "--pid", "0"},
      {"record", "--system", "--budget", "much"},
      {"record", "--system", "--frequency", "20000"},
      {"record", "--system", "--label", "nolabel"},
      {"record", "--system", "--dump-on-wait", "1s"},
  };
  for (const auto& line : lines) {
    BufferOutput output;
    EXPECT_NE(RunCulprit(line, output), 0) << line.back();
    EXPECT_FALSE(output.err().empty());
  }
}

TEST(RecordCommand, AnExistingFileStays) {
  const TestFolder folder;
  const std::string path = folder.Write("t.ctrace", "x");
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"record", "-o", path, "--", "true"}, output), 1);
  EXPECT_NE(output.err().find("--force"), std::string::npos);
}

TEST(DumpCommand, WithoutThatRecorderItSaysSo) {
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"dump", "--pid", "1"}, output), 1);
  EXPECT_FALSE(output.err().empty());
}

TEST(MarkCommand, TakesBeginAndEndOnly) {
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"mark", "middle", "x"}, output), 1);
  EXPECT_EQ(RunCulprit({"mark", "begin", "a|b"}, output), 1);
  EXPECT_EQ(RunCulprit({"mark", "begin", "x"}, output), 0);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
