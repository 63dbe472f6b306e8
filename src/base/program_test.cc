// SPDX-License-Identifier: Apache-2.0
#include "base/program.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "base/file.h"
#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

int WaitFor(RunningProgram& program) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto code = program.Poll()) return *code;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return -1;
}

TEST(RunProgram, KeepsBothStreamsApartAndTheCode) {
  const auto run = RunProgram({"sh", "-c", "echo out; echo err >&2; exit 3"}, seconds(10));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().code, 3);
  EXPECT_EQ(run.value().out, "out\n");
  EXPECT_EQ(run.value().err, "err\n");
}

TEST(RunProgram, ReadsMuchFromBothStreams) {
  const auto run = RunProgram(
      {"sh", "-c", "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2"}, seconds(20));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().out.size(), 3'000'000U);
  EXPECT_EQ(run.value().err.size(), 2'000'000U);
}

TEST(RunProgram, KillsWhatTakesTooLongWithItsChildren) {
  const auto begin = std::chrono::steady_clock::now();
  const auto run = RunProgram({"sh", "-c", "sleep 60 & sleep 60"}, milliseconds(100));
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.value().code, kKilledCode);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
}

TEST(RunProgram, SaysWhichProgramIsMissing) {
  const auto run = RunProgram({"culprit-no-such-program"}, seconds(1));
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().file, "culprit-no-such-program");
  EXPECT_NE(run.error().hint.find("PATH"), std::string::npos);
}

TEST(RunningProgram, AppendsToItsLog) {
  const TestFolder folder;
  for (int i = 0; i < 2; ++i) {
    auto program = RunningProgram::Start({"sh", "-c", "echo one; echo two >&2"}, folder / "log");
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(WaitFor(program.value()), 0);
  }
  EXPECT_EQ(ReadWholeFile(folder / "log").value(), "one\ntwo\none\ntwo\n");
}

TEST(RunningProgram, EndsWithItsWholeGroup) {
  const TestFolder folder;
  std::string text;
  {
    auto program = RunningProgram::Start({"sh", "-c", "sleep 60 & echo $!; wait"}, folder / "log");
    ASSERT_TRUE(program.ok());
    for (int i = 0; i < 500 && text.empty(); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
      text = ReadWholeFile(folder / "log").value();
    }
    ASSERT_FALSE(text.empty());
    program.value().Terminate();
    EXPECT_EQ(WaitFor(program.value()), 128 + SIGTERM);
  }
  const auto child = static_cast<pid_t>(std::stol(text));
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    const auto state = RunProgram({"ps", "-o", "stat=", "-p", std::to_string(child)}, seconds(5));
    // An orphan whose new parent does not collect it stays as a zombie.
    gone = state.ok() && (state.value().out.empty() || state.value().out[0] == 'Z');
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace culprit::TEST_FILE
