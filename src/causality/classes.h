// SPDX-License-Identifier: Apache-2.0
//
// The contrast classes of a scenario (003 §4.2.1): fast = shorter than T_fast,
// slow = longer than T_slow. A threshold is a duration, a percentile of the
// durations (nearest rank: of n sorted values that at index ceil(p n) - 1), or
// left to be chosen: then T_slow lies in the widest gap between neighbouring
// durations, if they at least double across it, else it is p90, and T_fast is p50
// or the lower edge of that gap, whichever is less. What was used, and the
// distribution it came from, is in the result. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "causality/evidence.h"

namespace culprit::causality {

struct Threshold {
  enum class Kind : uint8_t { kChosen, kDuration, kPercentile };
  Kind kind = Kind::kChosen;
  int64_t dur_ns = 0;     // kDuration
  double percentile = 0;  // kPercentile: 50 for p50

  bool operator==(const Threshold&) const = default;
};
// "300ms", "p90", "p99.9", "auto".
std::optional<Threshold> ParseThreshold(std::string_view text);

// Of the durations of a scenario's instances.
struct DurationFacts {
  uint64_t count = 0;
  int64_t sum_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t p10_ns = 0;
  int64_t p25_ns = 0;
  int64_t p50_ns = 0;
  int64_t p75_ns = 0;
  int64_t p90_ns = 0;
  int64_t p95_ns = 0;
  int64_t p99_ns = 0;
};
DurationFacts DescribeDurations(std::vector<int64_t> durations_ns);
// Nearest rank; `sorted` ascending and not empty.
int64_t Percentile(const std::vector<int64_t>& sorted, double percentile);

struct ScenarioFacts {
  std::string name;
  DurationFacts durations;
};
// By number of instances, most first, then by name.
std::vector<ScenarioFacts> DescribeScenarios(const Evidence& evidence);

struct ClassOptions {
  Threshold fast;
  Threshold slow;
};

struct Classes {
  int64_t t_fast_ns = 0;
  int64_t t_slow_ns = 0;
  bool chosen = false;  // at least one threshold was not given
  std::string why;      // how the chosen ones came about, a sentence
  DurationFacts durations;
  // Numbers of instances in Evidence::instances, in canonical order.
  std::vector<uint32_t> fast;
  std::vector<uint32_t> slow;
  uint64_t between = 0;
};

// Errors, each with a hint of thresholds that would do: no such scenario, too few
// instances, T_fast above T_slow, an empty class.
Result<Classes> ChooseClasses(const Evidence& evidence, const std::string& scenario,
                              const ClassOptions& options);

}  // namespace culprit::causality
