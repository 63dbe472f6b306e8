// SPDX-License-Identifier: Apache-2.0
#include "cli/shell_word.h"

#include <gtest/gtest.h>

#include "cli/shell_run.h"

namespace culprit::cli {
namespace {

TEST(ShellWord, HarmlessWordsStayAsTheyAre) {
  EXPECT_EQ(ShellWord("fleet/traces-01:3"), "fleet/traces-01:3");
  EXPECT_EQ(ShellWord("*.sys"), "'*.sys'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(ShellWord, TheShellGivesBackWhatWasMeant) {
  for (const std::string word : {"*.sys!*", "it's", "a b", "$HOME", "`id`", "a\\b", "~", "#3"}) {
    EXPECT_EQ(RunShell("printf %s " + ShellWord(word)).text, word);
  }
}

}  // namespace
}  // namespace culprit::cli
