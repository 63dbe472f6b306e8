// SPDX-License-Identifier: Apache-2.0
// The library that late_library opens.
#include "truth.h"

extern "C" void ComputeInTheLibrary();
extern "C" void SleepInTheLibrary();

namespace {
volatile uint64_t g_sink = 1;
}  // namespace

extern "C" PLANTED void ComputeInTheLibrary() {
  const int64_t begin_ns = programs::ThreadCpuNs();
  while (programs::ThreadCpuNs() < begin_ns + 80'000'000) {
    for (int i = 0; i < 20'000; ++i) g_sink = g_sink * 6364136223846793005U + 1;
  }
  programs::TellRun("library", programs::ThreadCpuNs() - begin_ns, "ComputeInTheLibrary");
}

extern "C" PLANTED void SleepInTheLibrary() {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns + 40'000'000;
  programs::SleepMs(40);
  wait.until_ns = programs::NowNs();
  programs::TellWait("library", wait, "timer", "SleepInTheLibrary");
}
