// SPDX-License-Identifier: Apache-2.0
#include "guard/thresholds.h"

#include <algorithm>

namespace culprit::guard {
namespace {

constexpr uint64_t kEnoughForQuantile = 10'000;
constexpr uint64_t kEnoughForMaximum = 100;
constexpr uint64_t kTailPpm = 999'900;
// How far above the tail of its samples, in halves of it, a threshold is...
constexpr uint64_t kUsualHalves = 3;
constexpr uint64_t kCarefulHalves = 4;  // ...where these are few, or of other units

uint64_t WithMargin(const LatencyStats& stats, const ThresholdOptions& options, uint64_t halves) {
  if (stats.count() < std::max<uint64_t>(options.min_samples, 1)) return 0;
  uint64_t threshold_ns = stats.mean_ns() + options.k * stats.sigma_ns();
  if (options.rule == ThresholdRule::kTail) {
    const bool many = stats.count() >= kEnoughForQuantile;
    const uint64_t tail_ns = many ? stats.QuantileNs(kTailPpm) : stats.max_ns();
    if (stats.count() < kEnoughForMaximum) halves = kCarefulHalves;
    threshold_ns = std::max(threshold_ns, tail_ns * halves / 2);
  }
  return std::max(threshold_ns, options.floor_ns);
}

}  // namespace

bool AddSample(const wire::Sample& sample, Profile& profile) {
  const uint64_t dur_ns = sample.wall_ns - std::min<uint64_t>(sample.wall_ns, sample.run_delay_ns);
  if (sample.type == wire::kUnknown) {
    profile.unknown.Add(dur_ns);
  } else if (sample.type == wire::kWholeIteration) {
    profile.iteration.Add(dur_ns);
  } else if (sample.type < profile.types.size()) {
    profile.types[sample.type].stats.Add(dur_ns);
  } else {
    return false;
  }
  return true;
}

uint64_t ThresholdNs(const LatencyStats& stats, const ThresholdOptions& options) {
  return WithMargin(stats, options, kUsualHalves);
}

void SetThresholds(Profile& profile, const ThresholdOptions& options) {
  LatencyStats all = profile.unknown;
  uint64_t largest_ns = 0;
  uint64_t well_known_ns = 0;
  for (UnitType& type : profile.types) {
    all.Merge(type.stats);
    type.threshold_ns = ThresholdNs(type.stats, options);
    largest_ns = std::max(largest_ns, type.threshold_ns);
    if (type.stats.count() >= kEnoughForMaximum) {
      well_known_ns = std::max(well_known_ns, WithMargin(type.stats, options, kCarefulHalves));
    }
  }
  profile.floor_ns = options.floor_ns;
  profile.unknown_threshold_ns = std::max(WithMargin(all, options, kCarefulHalves), well_known_ns);
  if (profile.unknown_threshold_ns == 0) return;  // nothing was calibrated
  for (UnitType& type : profile.types) {
    if (type.threshold_ns == 0) type.threshold_ns = profile.unknown_threshold_ns;
  }
  profile.iteration_threshold_ns = ThresholdNs(profile.iteration, options);
  if (profile.iteration_threshold_ns == 0) {
    profile.iteration_threshold_ns = 2 * std::max(largest_ns, profile.unknown_threshold_ns);
  }
}

}  // namespace culprit::guard
