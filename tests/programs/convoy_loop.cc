// SPDX-License-Identifier: Apache-2.0
// A convoy that goes on for as many milliseconds as the operand says: four threads
// want one lock all the time, and whoever has it sleeps 5 ms. So of every thread's
// time three quarters are waits for the lock, whose owner is another of them.
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "truth.h"

namespace {

constexpr int kThreads = 4;
constexpr int64_t kHoldMs = 5;

// Hands the lock on in turn: a mutex may be taken again by who released it.
std::mutex g_mutex[kThreads];

PLANTED void QueueInTheConvoy(int me) { g_mutex[me].lock(); }

void Loop(int me, int64_t end_ns) {
  while (programs::NowNs() < end_ns) {
    QueueInTheConvoy(me);
    programs::SleepMs(kHoldMs);
    g_mutex[(me + 1) % kThreads].unlock();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int64_t end_ns = programs::NowNs() + std::atol(argv[1]) * 1'000'000;
  for (int i = 1; i < kThreads; ++i) g_mutex[i].lock();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(&Loop, i, end_ns);
  for (std::thread& thread : threads) thread.join();
  return 0;
}
