// SPDX-License-Identifier: Apache-2.0
//
// LatencyStats: how long units of one type took, in a form that adds up: exact
// number, sum, sum of squares and maximum, and a histogram of logarithmic
// buckets whose upper ends are at most 1/128 above the value. Integers only, so
// that the order of adding and merging does not show. Values above kLongest
// count as kLongest. A copy is a plain copy; about 16 bytes a used bucket.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace culprit::guard {

__extension__ using WideSum = unsigned __int128;

class LatencyStats {
 public:
  static constexpr uint64_t kLongest = (uint64_t{1} << 44) - 1;  // ns: 4.9 hours
  static constexpr uint32_t kBuckets = 128 * 38;
  using Bucket = std::pair<uint32_t, uint64_t>;  // number, count

  void Add(uint64_t dur_ns, uint64_t times = 1);
  void Merge(const LatencyStats& other);

  uint64_t count() const { return count_; }
  WideSum sum() const { return sum_; }
  WideSum squares() const { return squares_; }
  uint64_t max_ns() const { return max_ns_; }
  uint64_t mean_ns() const;   // rounded down
  uint64_t sigma_ns() const;  // of the population, rounded up
  // The least value that `share_ppm` millionths of the samples do not exceed, at
  // most 1/128 too high, never above the maximum. 0 without samples.
  uint64_t QuantileNs(uint64_t share_ppm) const;
  // Used buckets by number.
  const std::vector<Bucket>& histogram() const { return histogram_; }

  static uint32_t BucketOf(uint64_t dur_ns);
  static uint64_t LowerEndNs(uint32_t bucket);
  static uint64_t UpperEndNs(uint32_t bucket);  // inclusive

  // From a file; false if the parts contradict each other.
  static bool FromParts(WideSum sum, WideSum squares, uint64_t max_ns,
                        std::vector<Bucket> histogram, LatencyStats& out);

  bool operator==(const LatencyStats&) const = default;

 private:
  uint64_t count_ = 0;
  WideSum sum_ = 0;
  WideSum squares_ = 0;
  uint64_t max_ns_ = 0;
  std::vector<Bucket> histogram_;
};

}  // namespace culprit::guard
