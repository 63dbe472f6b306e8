// SPDX-License-Identifier: Apache-2.0
// push/ has the tests of sending; here what the command does around it.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/test_folder.h"
#include "cli/buffer_output.h"
#include "cli/run.h"

namespace culprit::cli::TEST_FILE {
namespace {

TEST(PushCommand, MakesNoCorpusForASourceThatIsNotThere) {
  const TestFolder folder;
  const std::string target = folder / "target";
  for (const std::string& source : {folder / "nowhere", folder / "nowhere.ctrace"}) {
    BufferOutput output;
    EXPECT_EQ(RunCulprit({"push", target, source}, output), 1);
    EXPECT_NE(output.err().find("nowhere"), std::string::npos) << output.err();
    EXPECT_FALSE(std::filesystem::exists(target));
  }
  // A folder that is no corpus is none either.
  std::filesystem::create_directory(folder / "plain");
  BufferOutput output;
  EXPECT_EQ(RunCulprit({"push", target, folder / "plain"}, output), 1);
  EXPECT_FALSE(std::filesystem::exists(target));
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
