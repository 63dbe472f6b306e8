// SPDX-License-Identifier: Apache-2.0
// One process, two images: sleeps in a function of this program, then becomes
// /bin/sleep. Frames of the first must not be looked up in the second.
#include "truth.h"

namespace {

constexpr int64_t kSleepMs = 40;

PLANTED programs::Wait SleepBeforeExec() {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns + kSleepMs * 1'000'000;
  programs::SleepMs(kSleepMs);
  wait.until_ns = programs::NowNs();
  return wait;
}

}  // namespace

int main() {
  const programs::Wait wait = SleepBeforeExec();
  programs::TellWait("before", wait, "timer", "SleepBeforeExec");
  programs::Tell(R"({"exec":%d,"at_ns":%ld})", getpid(), static_cast<long>(programs::NowNs()));
  execl("/bin/sleep", "sleep", "0.06", static_cast<char*>(nullptr));
  return 1;
}
