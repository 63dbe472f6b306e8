// SPDX-License-Identifier: Apache-2.0
//
// CpuAllowance: how much CPU time a thread may still use. Its share of one CPU is
// saved up as time goes by, up to kBurstNs, which it begins with; what it uses is
// taken off, also when that is more than there is: then it has to wait. Pure: no
// clocks. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace culprit::record {

class CpuAllowance {
 public:
  static constexpr int64_t kBurstNs = 100'000'000;

  // May it go on? Both times only grow; a share of 0 is no bound.
  bool Allows(double share, int64_t now_ns, int64_t cpu_ns) {
    if (share <= 0) {
      saved_ns_ = kBurstNs;
    } else {
      const double earned_ns = share * static_cast<double>(now_ns - now_ns_);
      saved_ns_ =
          std::min(saved_ns_ + static_cast<int64_t>(earned_ns) - (cpu_ns - cpu_ns_), kBurstNs);
    }
    now_ns_ = now_ns;
    cpu_ns_ = cpu_ns;
    return saved_ns_ > 0;
  }

 private:
  int64_t saved_ns_ = kBurstNs;
  int64_t now_ns_ = 0;
  int64_t cpu_ns_ = 0;
};

}  // namespace culprit::record
