// SPDX-License-Identifier: Apache-2.0
//
// Impact analysis (003 §3, SPEC §7): how much of the instances' time a component
// is waiting or running, and how much of its waiting is the same wait delaying
// several instances.
//
//   IA_wait = D_wait / D_scn    IA_run = D_run / D_scn
//   IA_opt = (D_wait - D_waitdist) / D_scn
//
// Confidence intervals are of a bootstrap over traces (resampled with replacement,
// percentile method, fixed seed): instances of one trace are not independent.
// Shares are ratios of exact integer sums. Deterministic, whatever the order of
// the traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "causality/evidence.h"

namespace culprit::causality {

struct ImpactOptions {
  uint32_t resamples = 1000;  // 0: no intervals
  double confidence = 0.95;
  uint64_t seed = 1;
  size_t jobs = 0;  // threads; 0: all hardware threads
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct ImpactRow {
  std::string component;            // the set's or the part's name
  std::string scenario;             // empty: all
  uint64_t instances = 0;           // of the scenario
  uint64_t affected_instances = 0;  // with any wait or run of the component
  uint64_t traces = 0;              // with instances of the scenario
  uint64_t waits = 0;
  uint64_t distinct_waits = 0;
  int64_t d_scn_ns = 0;
  int64_t d_wait_ns = 0;
  int64_t d_run_ns = 0;
  int64_t d_waitdist_ns = 0;
  double ia_wait = 0;
  double ia_run = 0;
  double ia_opt = 0;
  double propagation = 1;  // D_wait / D_waitdist; 1 where there is no wait
  // For the whole set per scenario and for components over all scenarios, from
  // two traces on.
  std::optional<Interval> ia_wait_interval;
  std::optional<Interval> ia_run_interval;
  std::optional<Interval> ia_opt_interval;
};

struct ImpactResult {
  ImpactRow whole;                    // the set, all scenarios
  std::vector<ImpactRow> components;  // over all scenarios; most D_wait + D_run first
  std::vector<ImpactRow> scenarios;   // of the set; most D_wait + D_run first
  std::vector<ImpactRow> cells;       // ⟨scenario, component⟩ without intervals; same order
  std::vector<PropagatedWait> propagated;  // of the set; most charged beyond once first
  uint32_t resamples = 0;
  double confidence = 0;
  uint64_t seed = 0;
};

ImpactResult MeasureImpact(const Evidence& evidence, const ImpactOptions& options = {});

}  // namespace culprit::causality
