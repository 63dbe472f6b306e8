// SPDX-License-Identifier: Apache-2.0
#include "record/interrupt_cost.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace culprit::record::TEST_FILE {
namespace {

TEST(InterruptCost, IsWhatAnInterruptMayTakeAndTheSameTwice) {
  if (geteuid() != 0) GTEST_SKIP() << "the clock of samples takes root on some machines";
  const int64_t first = MeasureInterruptNs();
  // Fewer than a hundred instructions are no interrupt; its handler is no millisecond.
  EXPECT_GT(first, 50);
  EXPECT_LT(first, 50'000);
  const int64_t second = MeasureInterruptNs();
  EXPECT_LT(second, 4 * first + 2000);
  EXPECT_LT(first, 4 * second + 2000);
}

}  // namespace
}  // namespace culprit::record::TEST_FILE
