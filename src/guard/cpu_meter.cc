// SPDX-License-Identifier: Apache-2.0
#include "guard/cpu_meter.h"

#include <time.h>

#include "base/text.h"

namespace culprit::guard {

uint64_t ProcessCpuNs(int64_t pid) {
  clockid_t clock = {};
  timespec used = {};
  if (pid <= 0 || pid > INT32_MAX || clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 ||
      clock_gettime(clock, &used) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(used.tv_sec) * kNsPerSecond + static_cast<uint64_t>(used.tv_nsec);
}

uint64_t ThreadCpuNs() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<uint64_t>(used.tv_sec) * kNsPerSecond + static_cast<uint64_t>(used.tv_nsec);
}

void CpuMeter::Look(const std::vector<int64_t>& pids) {
  for (const int64_t pid : pids) {
    const uint64_t cpu_ns = ProcessCpuNs(pid);
    const auto [found, is_new] = spans_.try_emplace(pid, Span{cpu_ns, cpu_ns});
    if (cpu_ns > found->second.last_ns) found->second.last_ns = cpu_ns;
  }
}

uint64_t CpuMeter::cpu_ns() const {
  uint64_t sum_ns = 0;
  for (const auto& [pid, span] : spans_) sum_ns += span.last_ns - span.first_ns;
  return sum_ns;
}

}  // namespace culprit::guard
