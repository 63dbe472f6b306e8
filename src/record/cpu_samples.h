// SPDX-License-Identifier: Apache-2.0
//
// CpuSamples: where the threads of this machine are, so and so many times a second of CPU
// time: by a clock on each CPU, so that switches of threads cost no more than without it. In
// a system call a thread is where it made the call. Takes rights that mostly root alone has. One
// thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "record/perf_ring.h"

namespace culprit::record {

class CpuSamples {
 public:
  using Visitor = std::function<void(int64_t pid, uint64_t program_counter)>;

  // Not sampling yet. An Error says what would have to be allowed.
  static Result<CpuSamples> Open(uint64_t samples_a_second);

  // Changes nothing if it is so already.
  void Sample(bool on);
  // What came since; threads of the kernel are left out.
  void Take(const Visitor& visitor);

 private:
  CpuSamples() = default;

  std::vector<PerfRing> rings_;
  bool on_ = false;
};

}  // namespace culprit::record
