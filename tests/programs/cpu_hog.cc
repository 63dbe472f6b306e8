// SPDX-License-Identifier: Apache-2.0
// Computes, and waits for nothing: one function takes twice the time of another.
#include "truth.h"

namespace {

volatile uint64_t g_sink = 1;

PLANTED void Multiply(int64_t cpu_ns) {
  const int64_t end_ns = programs::ThreadCpuNs() + cpu_ns;
  while (programs::ThreadCpuNs() < end_ns) {
    for (int i = 0; i < 20'000; ++i) g_sink = g_sink * 6364136223846793005U + 1;
  }
}

PLANTED void Divide(int64_t cpu_ns) {
  const int64_t end_ns = programs::ThreadCpuNs() + cpu_ns;
  while (programs::ThreadCpuNs() < end_ns) {
    for (int i = 0; i < 20'000; ++i) g_sink = ~uint64_t{0} / (g_sink | 3);
  }
}

void Measure(void (*work)(int64_t), int64_t ms, const char* name) {
  const int64_t begin_ns = programs::ThreadCpuNs();
  work(ms * 1'000'000);
  programs::TellRun("hog", programs::ThreadCpuNs() - begin_ns, name);
}

}  // namespace

int main() {
  Measure(&Multiply, 80, "Multiply");
  Measure(&Divide, 160, "Divide");
  return 0;
}
