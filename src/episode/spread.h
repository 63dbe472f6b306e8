// SPDX-License-Identifier: Apache-2.0
//
// Spread: number, sum and sum of squares of whole numbers, to ask exactly which
// of them lie above mean + 2 sigma. Integers all through, so the answer is the
// same on every machine: x > S/n + 2 sqrt(Q/n - (S/n)^2) is asked as
// (x n - S)^2 > 4 (n Q - S^2). Values are clamped to kLargest, counts to 2^23;
// then nothing overflows 128 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace culprit::episode {

class Spread {
 public:
  __extension__ using Wide = unsigned __int128;
  static constexpr uint64_t kLargest = uint64_t{1} << 40;
  static constexpr uint64_t kMost = uint64_t{1} << 23;

  void Add(uint64_t value) {
    if (count_ == kMost) return;
    value = std::min(value, kLargest);
    ++count_;
    sum_ += value;
    squares_ += Wide{value} * value;
  }

  // Above mean + 2 sigma.
  bool IsOutlier(uint64_t value) const {
    value = std::min(value, kLargest);
    const Wide scaled = Wide{value} * count_;
    if (scaled <= sum_) return false;
    const Wide above = scaled - sum_;
    return above * above > 4 * Variance();
  }

  uint64_t count() const { return count_; }
  // For people to read; not used to decide.
  uint64_t Mean() const { return count_ == 0 ? 0 : sum_ / count_; }
  uint64_t Bound() const {
    if (count_ == 0) return 0;
    const double sigma = std::sqrt(static_cast<double>(Variance())) / static_cast<double>(count_);
    return Mean() + static_cast<uint64_t>(2 * sigma);
  }

 private:
  Wide Variance() const { return Wide{count_} * squares_ - Wide{sum_} * sum_; }

  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  Wide squares_ = 0;
};

}  // namespace culprit::episode
