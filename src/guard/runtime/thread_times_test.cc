// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/thread_times.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "guard/runtime/test_folder.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

constexpr uint64_t kUnset = UINT64_MAX;
constexpr int kReadings = 40;  // more than go by between two questions whose the descriptor is

class ThreadTimesTest : public testing::Test {
 protected:
  ThreadTimesTest() {
    PrepareClock();
    if (access("/proc/thread-self/schedstat", R_OK) != 0) skip_ = "this kernel has no schedstat";
  }
  ~ThreadTimesTest() override { state_->schedstat.Close(); }
  void SetUp() override {
    if (skip_ != nullptr) GTEST_SKIP() << skip_;
  }
  uint64_t RunDelayNs() {
    ThreadTimes times;
    times.run_delay_ns = kUnset;
    ReadThreadTimes(*state_, times);
    return times.run_delay_ns;
  }

  std::unique_ptr<ThreadState> state_ = std::make_unique<ThreadState>();
  const char* skip_ = nullptr;
};

TEST_F(ThreadTimesTest, ReadsWhatTheKernelSays) {
  uint64_t last_ns = 0;
  for (int i = 0; i < kReadings; ++i) {
    uint64_t run_ns = 0;
    uint64_t before_ns = 0;
    std::ifstream("/proc/thread-self/schedstat") >> run_ns >> before_ns;
    const uint64_t delay_ns = RunDelayNs();
    ASSERT_NE(delay_ns, kUnset);
    EXPECT_GE(delay_ns, before_ns);
    EXPECT_GE(delay_ns, last_ns);
    last_ns = delay_ns;
  }
}

TEST_F(ThreadTimesTest, AProgramThatClosesAllDescriptorsIsNoticed) {
  ASSERT_NE(RunDelayNs(), kUnset);
  close(state_->schedstat.fd());
  EXPECT_NE(RunDelayNs(), kUnset);
}

TEST_F(ThreadTimesTest, AnotherFileInItsPlaceIsNotTakenForIt) {
  ASSERT_NE(RunDelayNs(), kUnset);
  const TestFolder folder;
  const std::string path = folder.path() + "/other";
  std::ofstream(path) << "1 2 3 and more\n";
  const int other = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int number = state_->schedstat.fd();
  ASSERT_EQ(dup2(other, number), number);
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t delay_ns = RunDelayNs();
    ASSERT_NE(delay_ns, kUnset);
    EXPECT_NE(delay_ns, 2u);
  }
  EXPECT_NE(state_->schedstat.fd(), number);
  EXPECT_EQ(lseek(number, 0, SEEK_CUR), 0) << "the program's file is as it was";
  close(number);
  close(other);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
