// SPDX-License-Identifier: Apache-2.0
#include "record/haste.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "record/machine.h"

namespace culprit::record::TEST_FILE {
namespace {

bool IsBeforeOthers() { return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_RR; }
int Nice() { return getpriority(PRIO_PROCESS, 0); }

// True: it is so within some seconds. The thread is seen all the time.
bool Becomes(Haste& haste, const std::function<bool()>& state) {
  for (int i = 0; i < 1000; ++i) {
    haste.Seen();
    if (state()) return true;
    SleepNs(10'000'000);
  }
  return false;
}

class HasteTest : public testing::Test {
 protected:
  void SetUp() override {
    const sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &first) != 0) GTEST_SKIP() << "needs root";
    UseUsualPriority();
    ASSERT_FALSE(IsBeforeOthers());
  }
  std::atomic<double> fill_ = 0;
};

TEST_F(HasteTest, RunsBehindOthersUnlessTheRingFills) {
  {
    Haste haste([this] { return fill_.load(); });
    EXPECT_TRUE(IsBeforeOthers()) << "at first";
    EXPECT_TRUE(Becomes(haste, [] { return !IsBeforeOthers() && Nice() > 0; }));
    fill_ = Haste::kBehindFill;
    EXPECT_TRUE(Becomes(haste, IsBeforeOthers));
    fill_ = 0;
    EXPECT_TRUE(Becomes(haste, [] { return !IsBeforeOthers() && Nice() > 0; }));
  }
  EXPECT_FALSE(IsBeforeOthers());
  EXPECT_EQ(Nice(), 0);
}

TEST_F(HasteTest, RunsBeforeOthersWhenItComesLate) {
  Haste haste([this] { return fill_.load(); });
  ASSERT_TRUE(Becomes(haste, [] { return !IsBeforeOthers(); }));
  // Not seen from here on.
  for (int i = 0; i < 500 && !IsBeforeOthers(); ++i) SleepNs(10'000'000);
  EXPECT_TRUE(IsBeforeOthers());
}

// The nice value of a thread that may not raise its priority, when it was calm for long.
int NiceWithoutPrivilege() {
  constexpr uid_t kNobody = 65534;
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_NICE, &none);
  setrlimit(RLIMIT_RTPRIO, &none);
  if (setresuid(kNobody, kNobody, kNobody) != 0) return -1;
  Haste haste([] { return 0.0; });
  const int64_t end_ns = MonotonicNs() + 2 * Haste::kCalmNs;
  while (MonotonicNs() < end_ns) {
    haste.Seen();
    SleepNs(10'000'000);
  }
  return Nice();
}

TEST_F(HasteTest, WhoMayNotRaiseItsPriorityKeepsIt) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(NiceWithoutPrivilege());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
