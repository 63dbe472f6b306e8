// SPDX-License-Identifier: Apache-2.0
#include "record/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/test_folder.h"

namespace culprit::record::TEST_FILE {
namespace {

int WaitFor(ChildProcess& child) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto code = child.ExitCode()) return *code;
    usleep(10'000);
  }
  return -1;
}

TEST(ChildProcess, WaitsUntilItIsLetGoAndKeepsItsExitCode) {
  const TestFolder folder;
  const std::string file = folder / "ran";
  Result<ChildProcess> child =
      ChildProcess::Prepare({"/bin/sh", "-c", "echo > " + file + "; exit 7"});
  ASSERT_TRUE(child.ok());
  usleep(50'000);
  EXPECT_NE(access(file.c_str(), F_OK), 0);
  EXPECT_FALSE(child.value().ExitCode().has_value());
  ASSERT_TRUE(child.value().Release().ok());
  EXPECT_EQ(WaitFor(child.value()), 7);
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
}

TEST(ChildProcess, ASignalIsACodeAsInAShell) {
  Result<ChildProcess> child = ChildProcess::Prepare({"/bin/sh", "-c", "kill -9 $$"});
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(child.value().Release().ok());
  EXPECT_EQ(WaitFor(child.value()), 128 + SIGKILL);
}

TEST(ChildProcess, WhatCannotBeExecutedIsAnError) {
  Result<ChildProcess> child = ChildProcess::Prepare({"/no/such/program"});
  ASSERT_TRUE(child.ok());
  const Status status = child.value().Release();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().file, "/no/such/program");
}

TEST(ChildProcess, NeverRunsIfItsOwnerGoesFirst) {
  const TestFolder folder;
  const std::string file = folder / "ran";
  {
    const Result<ChildProcess> child = ChildProcess::Prepare({"/bin/sh", "-c", "echo > " + file});
    ASSERT_TRUE(child.ok());
  }
  usleep(50'000);
  EXPECT_NE(access(file.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
