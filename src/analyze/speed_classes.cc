// SPDX-License-Identifier: Apache-2.0
#include "analyze/speed_classes.h"

#include <algorithm>

namespace culprit::analyze {
namespace {

constexpr size_t kFewest = 10;

int64_t NearestRank(const std::vector<int64_t>& sorted, size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

ScenarioSpeeds Describe(std::vector<int64_t>& durations) {
  ScenarioSpeeds speeds;
  speeds.instances = durations.size();
  if (durations.empty()) return speeds;
  std::sort(durations.begin(), durations.end());
  speeds.p50_ns = NearestRank(durations, 50);
  speeds.p90_ns = NearestRank(durations, 90);
  speeds.max_ns = durations.back();
  for (const int64_t dur_ns : durations) {
    speeds.total_ns += dur_ns;
    const size_t place = HistogramPlace(dur_ns);
    if (speeds.histogram.size() <= place) speeds.histogram.resize(place + 1);
    ++speeds.histogram[place];
  }
  return speeds;
}

}  // namespace

size_t HistogramPlace(int64_t dur_ns) {
  // Squares compare exactly where half powers of two cannot: dur² < 2^(i+1) us².
  const uint64_t us = static_cast<uint64_t>(std::max<int64_t>(dur_ns, 0)) / 1000;
  const uint64_t bounded = std::min<uint64_t>(us, UINT32_MAX);
  size_t place = 0;
  while (place < 62 && bounded * bounded >= uint64_t{2} << place) ++place;
  return place;
}

SpeedClasses ClassifySpeeds(const stackmine::Evidence& evidence) {
  std::vector<std::vector<int64_t>> durations(evidence.scenarios.size());
  for (const auto& instance : evidence.instances) {
    durations[instance.scenario].push_back(instance.dur_ns);
  }
  SpeedClasses classes;
  for (auto& of_one : durations) classes.scenarios.push_back(Describe(of_one));
  for (const auto& instance : evidence.instances) {
    ScenarioSpeeds& speeds = classes.scenarios[instance.scenario];
    Speed speed = Speed::kMiddle;
    if (speeds.instances >= kFewest && instance.dur_ns < speeds.p50_ns) speed = Speed::kFast;
    if (speeds.instances >= kFewest && instance.dur_ns > speeds.p90_ns) speed = Speed::kSlow;
    classes.by_instance.push_back(speed);
    speeds.fast += speed == Speed::kFast ? 1 : 0;
    speeds.slow += speed == Speed::kSlow ? 1 : 0;
  }
  for (const ScenarioSpeeds& speeds : classes.scenarios) {
    classes.fast += speeds.fast;
    classes.slow += speeds.slow;
  }
  return classes;
}

}  // namespace culprit::analyze
