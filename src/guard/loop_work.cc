// SPDX-License-Identifier: Apache-2.0
#include "guard/loop_work.h"

#include <map>

namespace culprit::guard {
namespace {

constexpr uint64_t kAllPpm = 1'000'000;

using CountsByBucket = std::map<uint32_t, uint64_t>;

uint64_t LengthAt(const CountsByBucket& counts, uint64_t ppm) {
  WideSum whole = 0;
  for (const auto& [bucket, count] : counts) {
    whole += WideSum{LatencyStats::UpperEndNs(bucket)} * count;
  }
  WideSum part = 0;
  for (const auto& [bucket, count] : counts) {
    part += WideSum{LatencyStats::UpperEndNs(bucket)} * count;
    if (part * kAllPpm >= whole * ppm) return LatencyStats::LowerEndNs(bucket);
  }
  return 0;
}

}  // namespace

std::vector<uint64_t> UnitLengthsByTime(const Profile& profile, uint64_t ppm) {
  std::vector<CountsByBucket> of_loop(profile.loops.size());
  for (const UnitType& type : profile.types) {
    if (type.loop >= of_loop.size()) continue;
    for (const auto& [bucket, count] : type.stats.histogram()) of_loop[type.loop][bucket] += count;
  }
  std::vector<uint64_t> lengths;
  for (const CountsByBucket& counts : of_loop) lengths.push_back(LengthAt(counts, ppm));
  return lengths;
}

}  // namespace culprit::guard
