// SPDX-License-Identifier: Apache-2.0
#include "record/interrupt_cost.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "record/machine.h"
#include "record/perf_ring.h"

namespace culprit::record {
namespace {

constexpr int kTries = 10;
constexpr int64_t kTryNs = 1'000'000;  // shorter than a thread runs before another gets its CPU
constexpr int64_t kPeriodNs = 50'000;
// Two looks at the clock are far less apart.
constexpr int64_t kGapNs = 300;

// What the gaps take of kTryNs.
int64_t LostNs() {
  const int64_t begin = MonotonicNs();
  int64_t lost_ns = 0, wall_ns = 0;
  for (int64_t last = begin; wall_ns < kTryNs;) {
    const int64_t now = MonotonicNs();
    if (now - last > kGapNs) lost_ns += now - last;
    wall_ns = now - begin;
    last = now;
  }
  return lost_ns * kTryNs / wall_ns;
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
    quiet = std::min(quiet, LostNs());
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    interrupted = std::min(interrupted, LostNs());
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  close(fd);
  return std::max<int64_t>(0, interrupted - quiet) / (kTryNs / kPeriodNs);
}

}  // namespace culprit::record
