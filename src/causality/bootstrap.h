// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap: how often each of n traces is drawn in each of a number of resamples
// of n, with replacement (003 says nothing of error bars; traces are the unit
// because instances of one trace share its machine and its moment). The draws come
// from a fixed seed alone, so equal inputs give equal intervals.
//
// 2 bytes a trace and resample. Immutable; read by any number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace culprit::causality {

class Bootstrap {
 public:
  Bootstrap(size_t traces, uint32_t resamples, uint64_t seed);

  uint32_t resamples() const { return resamples_; }
  // How often this trace was drawn, by resample.
  std::span<const uint16_t> Draws(size_t trace) const {
    return {draws_.data() + trace * resamples_, resamples_};
  }
  // sums[r] += draws of the trace in r × value.
  void Add(size_t trace, int64_t value, std::vector<int64_t>& sums) const;

 private:
  uint32_t resamples_;
  std::vector<uint16_t> draws_;
};

}  // namespace culprit::causality
