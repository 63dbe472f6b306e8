// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/other_threads.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/test_folder.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime::TEST_FILE {
namespace {

// In a child process, because a test program may have threads: its answer.
template <typename Work>
int InChild(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::atomic<int> g_spinner{0};
std::atomic<bool> g_spin{true};
extern "C" __attribute__((noinline)) void SpinHere() {
  while (g_spin.load(std::memory_order_relaxed)) {
  }
}
void Spin() {
  g_spinner = RawGetTid();
  SpinHere();
}

TEST(OtherThreads, AProcessOfOneThreadHasNone) {
  EXPECT_EQ(InChild([] { return static_cast<int>(LookAtOtherThreads().state); }),
            static_cast<int>(OtherThreads::State::kNone));
}

TEST(OtherThreads, ARunningThreadIsSeen) {
  EXPECT_EQ(InChild([] {
              std::thread(Spin).detach();
              while (g_spinner == 0) std::this_thread::yield();
              return static_cast<int>(LookAtOtherThreads().state);
            }),
            static_cast<int>(OtherThreads::State::kRunning));
}

TEST(OtherThreads, AThreadThatATracerStoppedIsKnownByItsProgramCounter) {
  int to_tracer[2], to_child[2], answer[2];
  ASSERT_EQ(pipe(to_tracer) | pipe(to_child) | pipe(answer), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::thread(Spin).detach();
    while (g_spinner == 0) std::this_thread::yield();
    const int tid = g_spinner;
    char go = 0;
    if (write(to_tracer[1], &tid, sizeof(tid)) != sizeof(tid)) _exit(1);
    if (read(to_child[0], &go, 1) != 1) _exit(1);
    const OtherThreads threads = LookAtOtherThreads();
    const auto spin = reinterpret_cast<uint64_t>(&SpinHere);
    const char seen = threads.state == OtherThreads::State::kStopped &&
                              threads.program_counters.size() == 2 &&
                              threads.AnyWithin(spin - 1, spin + 256) &&
                              !threads.AnyWithin(spin + 256, spin + 512)
                          ? 1
                          : 0;
    if (write(answer[1], &seen, 1) != 1) _exit(1);
    pause();
  }
  int tid = 0;
  ASSERT_EQ(read(to_tracer[0], &tid, sizeof(tid)), static_cast<ssize_t>(sizeof(tid)));
  const bool traced = ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0 &&
                      ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0 &&
                      waitpid(tid, nullptr, __WALL) == tid;
  char seen = 0;
  if (traced) {
    EXPECT_EQ(write(to_child[1], "", 1), 1);
    EXPECT_EQ(read(answer[0], &seen, 1), 1);
  }
  kill(child, SIGKILL);
  if (traced) waitpid(tid, nullptr, __WALL);
  waitpid(child, nullptr, 0);
  for (const int fd :
       {to_tracer[0], to_tracer[1], to_child[0], to_child[1], answer[0], answer[1]}) {
    close(fd);
  }
  if (!traced) GTEST_SKIP() << "this process may not trace its children";
  EXPECT_EQ(seen, 1);
}

// A process that has changed its user may not read in /proc where its threads are.
TEST(OtherThreads, OfAProcessThatChangedItsUserAreKnownByWhoHoldsThem) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  const TestFolder session;
  ASSERT_EQ(chmod(session.path().c_str(), 01777), 0);
  int to_tracer[2], to_child[2], answer[2];
  ASSERT_EQ(pipe(to_tracer) | pipe(to_child) | pipe(answer), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!OpenSessionFolder(session.path().c_str())) _exit(1);
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
    std::thread(Spin).detach();
    while (g_spinner == 0) std::this_thread::yield();
    const int tid = g_spinner;
    char go = 0;
    if (write(to_tracer[1], &tid, sizeof(tid)) != sizeof(tid)) _exit(1);
    for (int look = 0; look < 2; ++look) {
      if (read(to_child[0], &go, 1) != 1) _exit(1);
      const OtherThreads threads = LookAtOtherThreads();
      const char state = static_cast<char>(threads.state);
      const char within = threads.AnyWithin(0x4711 - 1, 0x4711 + 1) ? 1 : 0;
      if (write(answer[1], &state, 1) != 1 || write(answer[1], &within, 1) != 1) _exit(1);
    }
    pause();
  }
  int tid = 0;
  ASSERT_EQ(read(to_tracer[0], &tid, sizeof(tid)), static_cast<ssize_t>(sizeof(tid)));
  ASSERT_EQ(ptrace(PTRACE_SEIZE, tid, nullptr, nullptr), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(tid, nullptr, __WALL), tid);
  const auto ask = [&](OtherThreads::State state, bool within) {
    char seen[2] = {};
    ASSERT_EQ(write(to_child[1], "", 1), 1);
    ASSERT_EQ(read(answer[0], seen, 1) + read(answer[0], seen + 1, 1), 2);
    EXPECT_EQ(static_cast<OtherThreads::State>(seen[0]), state);
    EXPECT_EQ(seen[1] != 0, within);
  };
  ask(OtherThreads::State::kRunning, false);
  const wire::HeldThread held = {static_cast<uint64_t>(tid), 0x4711};
  {
    std::ofstream file(session.path() + "/held." + std::to_string(child), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&held), sizeof(held));
  }
  ask(OtherThreads::State::kStopped, true);
  kill(child, SIGKILL);
  waitpid(tid, nullptr, __WALL);
  waitpid(child, nullptr, 0);
  for (const int fd :
       {to_tracer[0], to_tracer[1], to_child[0], to_child[1], answer[0], answer[1]}) {
    close(fd);
  }
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
