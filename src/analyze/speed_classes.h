// SPDX-License-Identifier: Apache-2.0
//
// SpeedClasses: which instances of each scenario were fast and which slow, by
// the distribution of their own scenario: fast below the median, slow above the
// 90th percentile, both by nearest rank. A scenario of fewer than ten instances,
// or whose instances all last as long, has neither. Pure function of durations.
#pragma once

#include <cstdint>
#include <vector>

#include "stackmine/evidence.h"

namespace culprit::analyze {

enum class Speed : uint8_t { kMiddle, kFast, kSlow };

struct ScenarioSpeeds {
  uint64_t instances = 0;
  uint64_t fast = 0;
  uint64_t slow = 0;
  int64_t total_ns = 0;
  int64_t p50_ns = 0;  // fast is below
  int64_t p90_ns = 0;  // slow is above
  int64_t max_ns = 0;
  // Instances in [1 us * 2^(i/2), 1 us * 2^((i+1)/2)); shorter ones in the first.
  std::vector<uint32_t> histogram;
};

struct SpeedClasses {
  std::vector<Speed> by_instance;
  std::vector<ScenarioSpeeds> scenarios;  // as Evidence::scenarios
  uint64_t fast = 0;
  uint64_t slow = 0;
};

SpeedClasses ClassifySpeeds(const stackmine::Evidence& evidence);

// The place of a duration in ScenarioSpeeds::histogram.
size_t HistogramPlace(int64_t dur_ns);

}  // namespace culprit::analyze
