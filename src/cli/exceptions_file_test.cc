// SPDX-License-Identifier: Apache-2.0
#include "cli/exceptions_file.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_folder.h"

namespace culprit::cli::TEST_FILE {
namespace {

using Globs = std::vector<std::string>;

TEST(ExceptionsFile, IsAGlobALineWithCommentsAndEmptyLines) {
  EXPECT_EQ(ParseExceptions("# by design\n"
                            "shockproof.sys!*\n"
                            "\n"
                            "  av.sys!Scan  # the scanner, until 2.0\r\n"
                            "app!operator#2\n"
                            "last"),
            (Globs{"shockproof.sys!*", "av.sys!Scan", "app!operator#2", "last"}));
  EXPECT_EQ(ParseExceptions(""), Globs{});
  EXPECT_EQ(ParseExceptions("\n \t \n# nothing"), Globs{});
}

TEST(ExceptionsFile, ThatIsNotThereIsAnError) {
  const TestFolder folder;
  EXPECT_FALSE(ReadExceptions(folder / "none").ok());
  ASSERT_TRUE(WriteWholeFile(folder / "some", "a!b\n", Overwrite::kAllow).ok());
  EXPECT_EQ(ReadExceptions(folder / "some").value(), Globs{"a!b"});
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
