// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_clock.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

TEST(UnitClock, TicksMeasureTime) {
  PrepareClock();
  const uint64_t begin_ns = MonotonicNs();
  const uint64_t begin = ReadTicks();
  usleep(20'000);
  const uint64_t ticks = ReadTicks() - begin;
  const uint64_t elapsed_ns = MonotonicNs() - begin_ns;
  const uint64_t measured_ns = NsOfTicks(ticks);
  EXPECT_LE(measured_ns, elapsed_ns + 100);
  EXPECT_GE(measured_ns + elapsed_ns / 1000 + 1'000'000, elapsed_ns);
}

TEST(UnitClock, ScalesThereAndBack) {
  PrepareClock();
  for (const uint64_t ns : {uint64_t{1'000}, uint64_t{1'000'000}, uint64_t{86'400'000'000'000}}) {
    const uint64_t back = NsOfTicks(TicksOfNs(ns));
    EXPECT_LE(back, ns);
    EXPECT_GE(back + 100 + ns / 1'000'000, ns);
  }
  EXPECT_EQ(ScaleBy32(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

TEST(UnitClock, IsTheMonotonicClock) {
  PrepareClock();
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t before =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  EXPECT_GE(MonotonicNs(), before);
  EXPECT_LT(MonotonicNs(), before + 1'000'000'000);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
