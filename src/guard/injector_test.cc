// SPDX-License-Identifier: Apache-2.0
#include "guard/injector.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace culprit::guard::TEST_FILE {
namespace {

TEST(ProgramOf, IsTheFileOfARunningProcess) {
  const auto program = ProgramOf(getpid());
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program.value(), std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST(ProgramOf, SaysThatThereIsNoSuchProcess) {
  constexpr int64_t kBeyondAll = (int64_t{1} << 22) + 1;
  const auto program = ProgramOf(kBeyondAll);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message, "there is no process 4194305");
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
