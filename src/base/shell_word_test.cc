// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

#include <gtest/gtest.h>

#include "base/program.h"

namespace culprit::TEST_FILE {
namespace {

TEST(ShellWord, HarmlessWordsStayAsTheyAre) {
  EXPECT_EQ(ShellWord("fleet/traces-01:3"), "fleet/traces-01:3");
  EXPECT_EQ(ShellWord("*.sys"), "'*.sys'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(ShellWord, TheShellGivesBackWhatWasMeant) {
  for (const std::string word : {"*.sys!*", "it's", "a b", "$HOME", "`id`", "a\\b", "~", "#3"}) {
    const auto said =
        RunProgram({"sh", "-c", "printf %s " + ShellWord(word)}, std::chrono::seconds(20));
    ASSERT_TRUE(said.ok());
    EXPECT_EQ(said.value().out, word);
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
