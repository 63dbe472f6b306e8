// SPDX-License-Identifier: Apache-2.0
#include "record/cpu_allowance.h"

#include <gtest/gtest.h>

namespace culprit::record::TEST_FILE {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

TEST(CpuAllowance, IsAShareOfTheTimeOnceTheFirstIsUsedUp) {
  CpuAllowance allowance;
  int64_t now_ns = 7'000 * kMillisecond;
  int64_t cpu_ns = 300 * kMillisecond;
  ASSERT_TRUE(allowance.Allows(0, now_ns, cpu_ns));
  // Works for a millisecond whenever it may, and waits for one when it may not.
  const int64_t begin_ns = now_ns;
  const int64_t before_ns = cpu_ns;
  while (now_ns < begin_ns + 20'000 * kMillisecond) {
    now_ns += kMillisecond;
    if (allowance.Allows(0.01, now_ns, cpu_ns)) cpu_ns += kMillisecond;
  }
  // The first hundred, and one of each hundred after that.
  EXPECT_NEAR(static_cast<double>(cpu_ns - before_ns) / kMillisecond, 100 + 200, 2);
}

TEST(CpuAllowance, WhatWasUsedTooMuchIsWaitedFor) {
  CpuAllowance allowance;
  ASSERT_TRUE(allowance.Allows(0, 0, 0));
  EXPECT_FALSE(allowance.Allows(0.01, 0, 150 * kMillisecond));
  EXPECT_FALSE(allowance.Allows(0.01, 4'000 * kMillisecond, 150 * kMillisecond));
  EXPECT_TRUE(allowance.Allows(0.01, 6'000 * kMillisecond, 150 * kMillisecond));
}

TEST(CpuAllowance, WithoutAShareThereIsNoBound) {
  CpuAllowance allowance;
  for (int64_t ms = 1; ms < 10'000; ms *= 2) {
    EXPECT_TRUE(allowance.Allows(0, ms * kMillisecond, ms * kMillisecond));
  }
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
