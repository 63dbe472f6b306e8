// SPDX-License-Identifier: Apache-2.0
#include "record/interrupt_cost.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "record/machine.h"
#include "record/perf_ring.h"

namespace culprit::record {
namespace {

// Shorter than a thread runs before another gets its CPU.
constexpr int kTries = 10;
constexpr int64_t kTryNs = 1'000'000;
constexpr int64_t kPeriodNs = 50'000;
// Two looks at the clock are far less apart.
constexpr int64_t kGapNs = 300;

struct Lost {
  int64_t ns = 0;
  int64_t wall_ns = 0;
};

Lost LookAtTheClock() {
  const int64_t begin = MonotonicNs();
  Lost lost;
  for (int64_t last = begin; lost.wall_ns < kTryNs;) {
    const int64_t now = MonotonicNs();
    if (now - last > kGapNs) lost.ns += now - last;
    lost.wall_ns = now - begin;
    last = now;
  }
  return lost;
}

}  // namespace

int64_t MeasureInterruptNs() {
  perf_event_attr attr = {};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = kPeriodNs;
  attr.disabled = 1;
  const int fd = OpenPerfEvent(attr, 0, -1);
  if (fd < 0) return 0;
  int64_t quiet = INT64_MAX, interrupted = INT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    quiet = std::min(quiet, LookAtTheClock().ns);
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    const Lost lost = LookAtTheClock();
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    interrupted = std::min(interrupted, lost.ns * kTryNs / lost.wall_ns);
  }
  close(fd);
  return std::max<int64_t>(0, interrupted - quiet) / (kTryNs / kPeriodNs);
}

}  // namespace culprit::record
