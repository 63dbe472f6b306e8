// SPDX-License-Identifier: Apache-2.0
#include "guard/cpu_meter.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

namespace culprit::guard::TEST_FILE {
namespace {

constexpr uint64_t kMs = 1'000'000;

uint64_t OwnCpuNs() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

TEST(CpuMeter, CountsWhatAProcessTookBetweenTheLooks) {
  CpuMeter meter;
  meter.Look({getpid()});
  EXPECT_EQ(meter.cpu_ns(), 0u);
  const uint64_t from_ns = OwnCpuNs();
  while (OwnCpuNs() < from_ns + 100 * kMs) {
  }
  meter.Look({getpid()});
  EXPECT_GE(meter.cpu_ns(), 80 * kMs);
  EXPECT_LE(meter.cpu_ns(), OwnCpuNs() - from_ns + 30 * kMs);
  EXPECT_NEAR(static_cast<double>(ProcessCpuNs(getpid())), static_cast<double>(OwnCpuNs()),
              static_cast<double>(50 * kMs));
}

TEST(CpuMeter, AProcessThatIsNotThereCountsNothing) {
  CpuMeter meter;
  meter.Look({int64_t{1} << 40});
  meter.Look({int64_t{1} << 40});
  EXPECT_EQ(meter.cpu_ns(), 0u);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
