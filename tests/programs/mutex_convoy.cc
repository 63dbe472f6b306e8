// SPDX-License-Identifier: Apache-2.0
// A convoy at a lock: one holds it, three queue up behind, and each holds it for
// as long once its turn has come. Everyone waits for the one before.
#include <mutex>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

constexpr int kWaiters = 3;
constexpr int64_t kHoldMs = 30;

std::mutex g_mutex;
int64_t g_released_by = 0;  // both guarded by the mutex: the last to release it
int64_t g_released_ns = 0;

void HoldAndRelease() {
  programs::SleepMs(kHoldMs);
  g_released_by = programs::Tid();
  g_released_ns = programs::NowNs();
  g_mutex.unlock();
}

PLANTED void QueueForTheLock() {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  g_mutex.lock();
  wait.until_ns = programs::NowNs();
  wait.wake_ns = g_released_ns;
  const int64_t by = g_released_by;
  HoldAndRelease();
  programs::TellWait("lock", wait, by, "QueueForTheLock");
}

}  // namespace

int main() {
  g_mutex.lock();
  std::vector<std::thread> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.emplace_back(&QueueForTheLock);
    programs::SleepMs(2);
  }
  HoldAndRelease();
  for (std::thread& waiter : waiters) waiter.join();
  return 0;
}
