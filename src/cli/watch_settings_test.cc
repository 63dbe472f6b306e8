// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_settings.h"

#include <gtest/gtest.h>

namespace culprit::cli::TEST_FILE {
namespace {

TEST(WatchSettings, TheRecorderHasWhatGuardsAndLooksLeave) {
  WatchSettings settings;
  settings.budget_ppm = 30'000;
  settings.guard_ppm = 10'000;
  settings.look_ppm = 5'000;
  EXPECT_EQ(settings.RecordPpm(2'000), 15'000u) << "what guards do not need is no invitation";
  EXPECT_EQ(settings.RecordPpm(10'000), 15'000u);
  EXPECT_EQ(settings.RecordPpm(16'000), 9'000u);
  EXPECT_EQ(settings.RecordPpm(39'000), 7'500u) << "a quarter at least";
}

TEST(WatchSettings, WithoutABudgetNothingIsBounded) {
  EXPECT_EQ(WatchSettings().RecordPpm(10'000), 0u);
}

}  // namespace
}  // namespace culprit::cli::TEST_FILE
