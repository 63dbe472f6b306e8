// SPDX-License-Identifier: Apache-2.0
//
// BuildPlan: the bytes of plan.N (runtime/wire.h) for a mode. kTrain and kOff
// need no profile (TrainPlan). kCalibrate and kGuard patch the boundaries of
// sub-units and as many of the profile's guards as the budget
// allows (affordable_guards.h): expected hits per unit x cost of a hit <= share of the mean unit's
// time (measured in calibration; before that estimated from training), where what a unit costs
// without them, with the hits that cut it, leaves half of that or less half of it. Types are in the
// profile's order, so that a plan's type numbers are the profile's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guard/affordable_guards.h"
#include "guard/profile.h"
#include "guard/runtime/wire.h"

namespace culprit::guard {

// Of one guard hit, and of a unit without its hits, as profiles of a busy redis show them.
// Where a unit is long enough for other work (system calls most of all) to have the caches
// in between, they cost many times what they take in a hot loop (bench/guard_hit_bench,
// guard_unit_bench); pipelined commands of a microsecond come near that. Those of x86-64
// fit a redis there (140 to 220 ns a request with two hits); in a hot loop of a virtual machine
// on a noisy host hits took 14 to 22 ns, which may be that machine.
struct CostOfLength {
  uint64_t hot_ps;
  uint64_t cold_ps;
  // Between the two up to kColdUnitNs.
  uint64_t Of(uint64_t unit_ns) const;
};
inline constexpr uint64_t kColdUnitNs = 6000;
#if defined(__x86_64__)
inline constexpr CostOfLength kHitCost = {5'000, 35'000};
inline constexpr CostOfLength kUnitCost = {20'000, 150'000};
#else
inline constexpr CostOfLength kHitCost = {4'000, 30'000};
inline constexpr CostOfLength kUnitCost = {16'000, 120'000};
#endif
// What one logged entry costs in training.
inline constexpr uint64_t kTrainEntryCostPs = 25'000;

struct PlanOptions {
  uint64_t budget_ppm = 10'000;          // of a unit's CPU time: 1 %
  std::optional<uint64_t> hit_cost_ps;   // kHitCost of the mean unit's time
  std::optional<uint64_t> unit_cost_ps;  // kUnitCost of it
  uint32_t max_guards = 512;             // functions
  uint32_t min_similarity_ppm = 500'000;
  bool hit_counting = false;
  uint32_t max_reports_a_second = 10;
  uint32_t sample_every = 0;
  uint64_t max_hits_a_second = 20'000'000;
};

// What a plan patches and what that is expected to cost.
struct PlanFacts {
  AffordableGuards guards;
  uint32_t functions = 0;  // patched, boundaries included
  uint32_t context_bits = 0;
  uint64_t unit_ns = 0;  // CPU time of a unit; its mean time if that is not known
  bool unit_ns_measured = false;
  uint64_t cost_ppm = 0;       // of that
  uint64_t unit_cost_ppm = 0;  // the part that is the same with none but those that cut units
  // How many types the patched contexts cannot tell from another type.
  uint32_t confused_types = 0;
};

std::string BuildPlan(const Profile& profile, wire::Mode mode, const PlanOptions& options = {},
                      PlanFacts* facts = nullptr);

struct TrainPlanOptions {
  std::vector<std::string> skip_modules;   // file names left unpatched
  uint64_t log_bytes = uint64_t{1} << 30;  // per process
  bool log_times = false;                  // wire::PlanHeader::log_times
};
std::string TrainPlan(const TrainPlanOptions& options = {});

}  // namespace culprit::guard
