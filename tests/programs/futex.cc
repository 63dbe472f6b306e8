// SPDX-License-Identifier: Apache-2.0
// Bare futexes: a wait that another thread ends, and one that times out, which
// the timer ends although other threads use the same word.
#include <linux/futex.h>

#include <atomic>
#include <thread>

#include "truth.h"

namespace {

constexpr int64_t kWaitMs = 40;

std::atomic<uint32_t> g_word = 0;
std::atomic<int64_t> g_woken_ns = 0;

long Futex(int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&g_word), operation | FUTEX_PRIVATE_FLAG,
                 value, timeout, nullptr, 0);
}

PLANTED programs::Wait WaitForTheWord() {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  while (g_word.load() == 0) Futex(FUTEX_WAIT, 0, nullptr);
  wait.until_ns = programs::NowNs();
  wait.wake_ns = g_woken_ns.load();
  return wait;
}

PLANTED programs::Wait WaitInVain() {
  const timespec timeout = {.tv_sec = 0, .tv_nsec = kWaitMs * 1'000'000};
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns + kWaitMs * 1'000'000;
  Futex(FUTEX_WAIT, g_word.load(), &timeout);
  wait.until_ns = programs::NowNs();
  return wait;
}

}  // namespace

int main() {
  int64_t waker = 0;
  std::thread thread([&] {
    waker = programs::Tid();
    programs::SleepMs(kWaitMs);
    g_woken_ns.store(programs::NowNs());
    g_word.store(1);
    Futex(FUTEX_WAKE, 1, nullptr);
  });
  const programs::Wait woken = WaitForTheWord();
  thread.join();
  programs::TellWait("futex", woken, waker, "WaitForTheWord");
  const programs::Wait in_vain = WaitInVain();
  programs::TellWait("timeout", in_vain, "timer", "WaitInVain");
  return 0;
}
