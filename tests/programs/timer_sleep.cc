// SPDX-License-Identifier: Apache-2.0
// Sleeps: waits that nobody but the timer ends.
#include "truth.h"

namespace {

constexpr int64_t kSleepMs = 40;

PLANTED programs::Wait SleepUntilTheTimer() {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns + kSleepMs * 1'000'000;
  programs::SleepMs(kSleepMs);
  wait.until_ns = programs::NowNs();
  return wait;
}

}  // namespace

int main() {
  for (int i = 0; i < 4; ++i) {
    const programs::Wait wait = SleepUntilTheTimer();
    programs::TellWait("sleep", wait, "timer", "SleepUntilTheTimer");
  }
  return 0;
}
