// SPDX-License-Identifier: Apache-2.0
//
// Diff: the chains of two corpora, before and after a change, scenario by
// scenario. A chain is the signature set tuple of whole root-to-leaf paths
// (contrast.h), its measure the time per instance. Chains appeared, vanished, grew
// or shrank; a permutation test over the instances of both sides (two-sided,
// corrected for the number of chains of the scenario) says whether that is more
// than chance. All instances count, there are no thresholds.
//
// Sums are exact: per side, chains + pruned = the component's cost in leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "causality/aggregate_graph.h"
#include "causality/classes.h"
#include "causality/contrast.h"
#include "causality/evidence.h"
#include "causality/significance.h"
#include "causality/tuple.h"

namespace culprit::causality {

struct DiffOptions {
  std::vector<std::string> scenarios;  // globs; empty: all that both sides have
  AggregateOptions aggregate;
  std::vector<std::string> exceptions;  // as for contrast
  double significant = 0.05;            // p_value at most
  // A chain whose time per instance moved by less than this share is `same`.
  double tolerance = 0.05;
  uint32_t examples = 3;
  SignificanceOptions significance = {.two_sided = true};
};

enum class Change : uint8_t { kSame, kAppeared, kGrew, kShrank, kVanished };
std::string_view Name(Change change);

struct DiffSide {
  int64_t cost_ns = 0;
  uint64_t count = 0;
  uint64_t instances = 0;       // that show the chain
  int64_t per_instance_ns = 0;  // cost over all instances of the scenario
};

struct ChainChange {
  SignatureTuple tuple;
  std::string scenario;
  Change change = Change::kSame;
  DiffSide before;
  DiffSide after;
  int64_t delta_ns = 0;  // per instance, after - before
  double p_value = 1;
  double p_single = 1;
  bool significant = false;
  std::vector<Example> examples;  // of the side that has more
};

struct ScenarioDiff {
  std::string scenario;
  DurationFacts before;
  DurationFacts after;
  int64_t mean_before_ns = 0;
  int64_t mean_after_ns = 0;
  int64_t pruned_before_ns = 0;
  int64_t pruned_after_ns = 0;
  double p_value = 1;                // of the durations
  std::vector<ChainChange> changes;  // without `same`; largest |delta| first
  uint64_t same = 0;                 // chains that did not move
  uint64_t exceptions = 0;           // left out
};

struct DiffResult {
  std::vector<ScenarioDiff> scenarios;   // by name
  std::vector<std::string> only_before;  // scenarios of one side
  std::vector<std::string> only_after;
};

// Errors: no scenario in common.
Result<DiffResult> FindDifferences(const Evidence& before, const Evidence& after,
                                   const DiffOptions& options = {});

}  // namespace culprit::causality
