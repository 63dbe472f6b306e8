// SPDX-License-Identifier: Apache-2.0
#include "record/breather.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "record/machine.h"

namespace culprit::record {
namespace {

// Works for so long by the CPU's time, step by step; how long that took.
int64_t Work(Breather& breather, int64_t cpu_ns) {
  const int64_t begin_ns = MonotonicNs();
  const int64_t end_ns = ThreadCpuNs() + cpu_ns;
  breather.Begin();
  while (ThreadCpuNs() < end_ns) breather.Step();
  return MonotonicNs() - begin_ns;
}

TEST(Breather, SleepsLongerThanItWorks) {
  int asked = 0;
  Breather breather([&] {
    ++asked;
    return false;
  });
  constexpr int64_t kCpuNs = 40 * Breather::kWorkNs;
  // So many pieces, or somewhat fewer if others take the CPU: time without it counts as work.
  EXPECT_GE(Work(breather, kCpuNs), kCpuNs + 10 * Breather::kSleepNs);
  EXPECT_GE(asked, 10);
  EXPECT_LE(asked, 41);
}

TEST(Breather, DoesNotSleepWhileTheWorkIsUrgent) {
  int asked = 0;
  Breather breather([&] { return ++asked > 2; });
  const int64_t begin_ns = MonotonicNs();
  breather.Begin();
  while (asked < 2) breather.Step();
  const int64_t slept_ns = MonotonicNs() - begin_ns;
  EXPECT_GE(slept_ns, Breather::kSleepNs + Breather::kWorkNs);
  // Each question from here on would be a sleep.
  const int64_t cpu_ns = ThreadCpuNs();
  int64_t shortest_ns = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    const int before = asked;
    const int64_t from_ns = MonotonicNs();
    while (asked == before) breather.Step();
    shortest_ns = std::min(shortest_ns, MonotonicNs() - from_ns);
  }
  EXPECT_LT(shortest_ns, Breather::kWorkNs + Breather::kSleepNs);
  EXPECT_GE(ThreadCpuNs() - cpu_ns, Breather::kWorkNs) << "it works all the time";
}

TEST(Breather, ShortWorkIsDoneAtOnce) {
  int asked = 0;
  Breather breather([&] {
    ++asked;
    return false;
  });
  for (int i = 0; i < 100; ++i) {
    breather.Begin();
    breather.Step();
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace culprit::record
