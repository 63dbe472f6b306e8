// SPDX-License-Identifier: Apache-2.0
#include "guard/latency_stats.h"

#include <algorithm>
#include <bit>

namespace culprit::guard {
namespace {

constexpr uint32_t kStepBits = 7;  // 128 buckets an octave
constexpr uint64_t kSteps = uint64_t{1} << kStepBits;

// The least root whose square is not below the value.
uint64_t RootRoundedUp(WideSum value) {
  uint64_t low = 0;
  uint64_t high = uint64_t{1} << 63;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (WideSum{middle} * middle >= value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

// Below 128 every value has its own; above, the seven bits behind the first.
uint32_t LatencyStats::BucketOf(uint64_t dur_ns) {
  dur_ns = std::min(dur_ns, kLongest);
  if (dur_ns < kSteps) return static_cast<uint32_t>(dur_ns);
  const auto octave = static_cast<uint32_t>(std::bit_width(dur_ns)) - kStepBits - 1;
  const auto step = static_cast<uint32_t>(dur_ns >> octave & (kSteps - 1));
  return (octave + 1) * static_cast<uint32_t>(kSteps) + step;
}

uint64_t LatencyStats::LowerEndNs(uint32_t bucket) {
  if (bucket < kSteps) return bucket;
  const uint32_t octave = bucket / static_cast<uint32_t>(kSteps) - 1;
  return (kSteps + bucket % kSteps) << octave;
}

uint64_t LatencyStats::UpperEndNs(uint32_t bucket) { return LowerEndNs(bucket + 1) - 1; }

void LatencyStats::Add(uint64_t dur_ns, uint64_t times) {
  if (times == 0) return;
  dur_ns = std::min(dur_ns, kLongest);
  count_ += times;
  sum_ += WideSum{dur_ns} * times;
  squares_ += WideSum{dur_ns} * dur_ns * times;
  max_ns_ = std::max(max_ns_, dur_ns);
  const uint32_t bucket = BucketOf(dur_ns);
  const auto at = std::lower_bound(histogram_.begin(), histogram_.end(), Bucket{bucket, 0});
  if (at != histogram_.end() && at->first == bucket) {
    at->second += times;
  } else {
    histogram_.insert(at, {bucket, times});
  }
}

void LatencyStats::Merge(const LatencyStats& other) {
  count_ += other.count_;
  sum_ += other.sum_;
  squares_ += other.squares_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
  std::vector<Bucket> merged;
  auto x = histogram_.begin();
  auto y = other.histogram_.begin();
  while (x != histogram_.end() || y != other.histogram_.end()) {
    if (y == other.histogram_.end() || (x != histogram_.end() && x->first < y->first)) {
      merged.push_back(*x++);
    } else if (x == histogram_.end() || y->first < x->first) {
      merged.push_back(*y++);
    } else {
      merged.emplace_back(x->first, x->second + y->second);
      ++x;
      ++y;
    }
  }
  histogram_ = std::move(merged);
}

uint64_t LatencyStats::mean_ns() const {
  return count_ == 0 ? 0 : static_cast<uint64_t>(sum_ / count_);
}

// Around the rounded mean, which is off by less than 1 ns: so is sigma.
uint64_t LatencyStats::sigma_ns() const {
  if (count_ == 0) return 0;
  const WideSum mean = mean_ns();
  const WideSum around = squares_ + mean * mean * count_ - 2 * mean * sum_;
  return RootRoundedUp((around + count_ - 1) / count_);
}

uint64_t LatencyStats::QuantileNs(uint64_t share_ppm) const {
  if (count_ == 0) return 0;
  const WideSum below = (WideSum{count_} * share_ppm + 999'999) / 1'000'000;
  WideSum seen = 0;
  for (const auto& [bucket, count] : histogram_) {
    seen += count;
    if (seen >= below) return std::min(UpperEndNs(bucket), max_ns_);
  }
  return max_ns_;
}

bool LatencyStats::FromParts(WideSum sum, WideSum squares, uint64_t max_ns,
                             std::vector<Bucket> histogram, LatencyStats& out) {
  out = LatencyStats();
  WideSum least = 0;
  WideSum least_squares = 0;
  WideSum most = 0;
  WideSum count = 0;
  for (size_t i = 0; i < histogram.size(); ++i) {
    const auto& [bucket, times] = histogram[i];
    if (bucket >= kBuckets || times == 0 || times > UINT32_MAX * uint64_t{256}) return false;
    if (i > 0 && histogram[i - 1].first >= bucket) return false;
    const WideSum low = LowerEndNs(bucket);
    least += low * times;
    least_squares += low * low * times;
    most += WideSum{std::min(UpperEndNs(bucket), max_ns)} * times;
    count += times;
  }
  if (histogram.empty()) return sum == 0 && squares == 0 && max_ns == 0;
  if (BucketOf(max_ns) != histogram.back().first || max_ns > kLongest) return false;
  // sum^2 <= count * squares for any numbers; and no square exceeds max^2.
  if (sum < least || sum > most || squares < least_squares) return false;
  if (count > UINT64_MAX || squares > WideSum{max_ns} * max_ns * count) return false;
  out.count_ = static_cast<uint64_t>(count);
  out.sum_ = sum;
  out.squares_ = squares;
  out.max_ns_ = max_ns;
  out.histogram_ = std::move(histogram);
  const WideSum mean = out.mean_ns();
  return squares + mean * mean * count >= 2 * mean * sum;
}

}  // namespace culprit::guard
