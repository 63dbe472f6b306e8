// SPDX-License-Identifier: Apache-2.0
//
// What only the real process shows: exit codes and its streams.
#include <gtest/gtest.h>

#include "cli/shell_run.h"

namespace culprit::cli::TEST_FILE {
namespace {

const std::string kCulprit = CULPRIT_BINARY;

TEST(Main, SaysItsVersionAndExitsWithZero) {
  const ShellOutcome outcome = RunShell(kCulprit + " --version");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.text.starts_with("culprit ")) << outcome.text;
}

TEST(Main, WithoutArgumentsExitsWithTwo) {
  const ShellOutcome outcome = RunShell(kCulprit + " 2>/dev/null");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text, "");
}

TEST(Main, AResultThatCannotBeWrittenIsAFailure) {
  const ShellOutcome outcome = RunShell(kCulprit + " --version >/dev/full");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.text,
            "culprit: standard output: cannot write: No space left on device\n"
            "  hint: free some space on that disk, then run the command again\n");
}

TEST(Main, WithStandardOutputClosedFails) {
  const ShellOutcome outcome = RunShell(kCulprit + " --version >&-");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.text.find("standard output: cannot write"), std::string::npos) << outcome.text;
}

TEST(Main, WithAClosedStreamFilesAreNotMixedUp) {
  TemporaryFolder folder;
  const ShellOutcome outcome =
      RunShell(kCulprit + " man --into " + (folder / "m") + " 0<&- 1>&- 2>&-");
  EXPECT_EQ(outcome.code, 0);
  const ShellOutcome page = RunShell("head -c 4 " + (folder / "m/culprit.1"));
  EXPECT_EQ(page.text, ".TH ");
  EXPECT_EQ(RunShell("cat " + (folder / "m/*.1") + " | grep -c 'manual pages into'").text, "0\n");
}

TEST(Main, AClosedPipeEndsItQuietly) {
  if (!HasProgram("bash")) GTEST_SKIP() << "bash is not installed";
  const ShellOutcome outcome = RunShell("bash -c '( sleep 0.2; " + kCulprit +
                                        " completion bash; echo code $? >&2 ) | true'");
  EXPECT_EQ(outcome.text, "code 141\n");
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
