// SPDX-License-Identifier: Apache-2.0
//
// Thresholds from samples: the time above which a unit of a type is reported.
// By default max(mean + 4 sigma, 1.5 * p99.99), with the maximum for p99.99 below
// 10,000 samples and twice the maximum below 100; a type with fewer than five is
// treated like units of no type, whose threshold is that of all samples together, or the
// largest of a type with a hundred, each with twice the p99.99 (or maximum): what training
// did not see need not be like what it mostly saw. Nothing is ever below the floor. The paper's
// mean + k * sigma is an option: on real servers it alarms on up to a fifth of the units.
#pragma once

#include <cstdint>

#include "guard/profile.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

enum class ThresholdRule { kTail, kMeanAndSigma };

struct ThresholdOptions {
  ThresholdRule rule = ThresholdRule::kTail;
  uint32_t k = 4;  // sigmas
  uint64_t floor_ns = 1'000'000;
  uint64_t min_samples = 5;
};

// Adds a sample of kCalibrate (or of kGuard's sampling), as wall time without run
// delay, to its type's statistics. False: it names no type of the profile, whose
// numbers are those of the plan; it is dropped.
bool AddSample(const wire::Sample& sample, Profile& profile);

// Of one type's samples; 0 if there are fewer than min_samples.
uint64_t ThresholdNs(const LatencyStats& stats, const ThresholdOptions& options);

// Sets the thresholds of all types, of unknown units and of whole iterations
// (without samples of these: twice the largest threshold of a type).
void SetThresholds(Profile& profile, const ThresholdOptions& options);

}  // namespace culprit::guard
