// SPDX-License-Identifier: Apache-2.0
// A consumer waits at a condition variable for a slow producer.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "truth.h"

namespace {

constexpr int kItems = 4;
constexpr int64_t kMakeMs = 25;

std::mutex g_mutex;
std::condition_variable g_made;
int g_items = 0;
int64_t g_made_ns = 0;

void Produce() {
  for (int i = 0; i < kItems; ++i) {
    programs::SleepMs(kMakeMs);
    {
      const std::lock_guard<std::mutex> lock(g_mutex);
      ++g_items;
      g_made_ns = programs::NowNs();
    }
    g_made.notify_one();
  }
}

PLANTED programs::Wait AwaitAnItem(int items) {
  std::unique_lock<std::mutex> lock(g_mutex);
  programs::Wait wait = {.from_ns = programs::NowNs()};
  while (g_items < items) g_made.wait(lock);
  wait.until_ns = programs::NowNs();
  wait.wake_ns = g_made_ns;
  return wait;
}

}  // namespace

int main() {
  int64_t producer = 0;
  std::thread thread([&] {
    producer = programs::Tid();
    Produce();
  });
  programs::Wait waits[kItems];
  for (int i = 0; i < kItems; ++i) waits[i] = AwaitAnItem(i + 1);
  thread.join();
  for (const programs::Wait& wait : waits) {
    programs::TellWait("condition", wait, producer, "AwaitAnItem");
  }
  return 0;
}
