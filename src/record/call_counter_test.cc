// SPDX-License-Identifier: Apache-2.0
#include "record/call_counter.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "trace/syscall_operation.h"

namespace culprit::record::TEST_FILE {
namespace {

constexpr int kRounds = 500;
constexpr const char* kChildName = "counted-calls";

// Wakes and waits on a futex kRounds times when it is told to, then sleeps for good.
[[noreturn]] void RunChild(int begin) {
  prctl(PR_SET_NAME, kChildName);
  char byte = 0;
  if (read(begin, &byte, 1) != 1) _exit(1);
  uint32_t word = 1;
  for (int i = 0; i < kRounds; ++i) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, nullptr);  // fails: another value
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr);
  }
  for (;;) pause();
}

TEST(CallCounter, CountsEveryCallWithItsOperationAndError) {
  if (!BpfEngine::Built() || geteuid() != 0) GTEST_SKIP() << "needs the BPF engine and root";
  int begin[2];
  ASSERT_EQ(pipe(begin), 0);
  const pid_t child = fork();
  if (child == 0) RunChild(begin[0]);
  auto counter = CallCounter::Start({.target = {.pids = {child}}, .budget = 0});
  if (!counter.ok()) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    GTEST_SKIP() << counter.error().ToString();
  }
  CallCounter& c = *counter.value();
  EXPECT_TRUE(c.Take().calls.empty());
  ASSERT_EQ(write(begin[1], "x", 1), 1);
  uint64_t wakes = 0;
  uint64_t waits = 0;
  uint64_t failed = 0;
  const auto never = [] { return false; };
  for (int i = 0; i < 100 && wakes < 2 * kRounds; ++i) {
    ASSERT_TRUE(c.Run(50'000'000, never).ok());
    for (const CallSum& sum : c.Take().calls) {
      EXPECT_EQ(sum.process, kChildName);
      if (trace::CallNumber(sum.arg0) != SYS_futex) continue;
      EXPECT_GT(sum.dur_ns, 0);
      if (trace::CallOperation(sum.arg0) == uint32_t{FUTEX_WAKE}) wakes += sum.calls;
      if (trace::CallOperation(sum.arg0) == uint32_t{FUTEX_WAIT}) waits += sum.calls;
      if (sum.error == EAGAIN) failed += sum.calls;
    }
  }
  EXPECT_EQ(wakes, 2U * kRounds);
  EXPECT_EQ(waits, uint64_t{kRounds});
  EXPECT_EQ(failed, uint64_t{kRounds});
  EXPECT_TRUE(c.Take().calls.empty());
  EXPECT_EQ(c.cost().lost, 0U);
  // What goes on is told with the time it has taken so far.
  ASSERT_TRUE(c.Run(100'000'000, never).ok());
  const auto open = c.Open();
  ASSERT_TRUE(open.ok());
  ASSERT_EQ(open.value().size(), 1U);
  EXPECT_EQ(open.value()[0].process, kChildName);
  EXPECT_GE(open.value()[0].dur_ns, 100'000'000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(begin[0]);
  close(begin[1]);
}

TEST(CallCounter, ABudgetThatIsTooSmallMakesItLookPartOfTheTime) {
  if (!BpfEngine::Built() || geteuid() != 0) GTEST_SKIP() << "needs the BPF engine and root";
  const pid_t child = fork();
  if (child == 0) {
    for (;;) syscall(SYS_getppid);
  }
  auto counter = CallCounter::Start({.target = {.pids = {child}}, .budget = 0.01});
  if (counter.ok()) {
    CallCounter& c = *counter.value();
    EXPECT_TRUE(c.Run(1'500'000'000, [] { return false; }).ok());
    EXPECT_LT(c.cost().duty, 1);
    uint64_t calls = 0;
    const CallSums sums = c.Take();
    for (const CallSum& sum : sums.calls) calls += sum.calls;
    EXPECT_GT(sums.counted_ns, 0);
    EXPECT_LT(sums.counted_ns, 1'500'000'000);
    EXPECT_GT(calls, 1000U);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (!counter.ok()) GTEST_SKIP() << counter.error().ToString();
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
