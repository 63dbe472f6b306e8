// SPDX-License-Identifier: Apache-2.0
//
// CpuMeter: the CPU time that some processes took while they were looked at, by
// their CPU clocks. A process counts from the first look at it to the last one that
// found it; what it took after that is lost. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace culprit::guard {

// Of all threads, those that ended included; 0: the process ended.
uint64_t ProcessCpuNs(int64_t pid);
// Of the calling thread.
uint64_t ThreadCpuNs();

class CpuMeter {
 public:
  void Look(const std::vector<int64_t>& pids);
  uint64_t cpu_ns() const;

 private:
  struct Span {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
  };
  std::map<int64_t, Span> spans_;
};

}  // namespace culprit::guard
