// SPDX-License-Identifier: Apache-2.0
//
// Contrast (003 §4, SPEC §8): behaviours that tell slow instances of a scenario
// from fast ones. Meta-patterns are the signature set tuples of all segments of
// 1..k nodes of the two aggregated wait graphs. One is a contrast if only the slow
// class has it, or if its C/N is slower by more than T_slow/T_fast. Contrast
// patterns are the tuples of whole root-to-leaf paths of the slow class that
// contain a contrast, equal ones merged.
//
// Beyond the paper: what a pattern costs per instance, how sure it is (a
// permutation test over the instances, significance.h), which instances show it
// best, and known exceptions that are left out and counted. docs/causality.md
// lists the choices. Deterministic, whatever the order of the traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "causality/aggregate_graph.h"
#include "causality/classes.h"
#include "causality/evidence.h"
#include "causality/examples.h"
#include "causality/meta_patterns.h"
#include "causality/significance.h"
#include "causality/tuple.h"

namespace culprit::causality {

enum class RankBy : uint8_t { kAverage, kCost, kInstances };
std::string_view Name(RankBy rank);

struct ContrastOptions {
  std::string scenario;
  ClassOptions classes;
  uint32_t max_segment = 5;  // k
  RankBy rank = RankBy::kAverage;
  AggregateOptions aggregate;
  // Globs over signatures: a pattern with a matching one is by design.
  std::vector<std::string> exceptions;
  uint32_t examples = 3;  // instances named per pattern
  SignificanceOptions significance;
};

struct MetaPattern {
  SignatureTuple tuple;
  ClassCosts costs;
};

struct ContrastPattern {
  SignatureTuple tuple;
  int64_t cost_ns = 0;     // C in the slow class
  uint64_t count = 0;      // N
  uint64_t paths = 0;      // of the slow graph, merged into it
  uint64_t instances = 0;  // slow ones that show it
  uint64_t traces = 0;     // of those
  uint64_t fast_instances = 0;
  int64_t fast_cost_ns = 0;
  uint64_t fast_count = 0;
  bool slow_only = false;       // no whole path of the fast class is this tuple
  std::optional<double> ratio;  // C/N slow over C/N fast, where both have it
  bool high_impact = false;     // costs more than T_slow in at least one instance
  int64_t most_in_instance_ns = 0;
  double p_value = 1;   // corrected for all patterns (significance.h)
  double p_single = 1;  // of this pattern alone
  // The contrast it contains that says most: slow-only ones before slower ones,
  // larger C first.
  MetaPattern why;
  std::vector<Example> examples;  // costliest first

  int64_t average_ns() const { return count == 0 ? 0 : cost_ns / static_cast<int64_t>(count); }
};

// A share of the component's cost or of the patterns' cost.
struct RankCoverage {
  uint32_t percent = 0;  // of the patterns, best ranked first
  uint64_t patterns = 0;
  int64_t cost_ns = 0;
  double share = 0;  // of the cost of all patterns
};

struct ContrastResult {
  std::string scenario;
  Classes classes;
  AggregateGraph slow;  // sums; nodes are left empty
  AggregateGraph fast;
  uint64_t slow_paths = 0;  // root-to-leaf paths
  uint64_t fast_paths = 0;
  uint64_t meta_patterns = 0;             // of either class
  uint64_t contrasts = 0;                 // of those
  std::vector<ContrastPattern> patterns;  // by rank
  std::vector<RankCoverage> coverage;     // 10, 20, 30 %
  int64_t component_ns = 0;               // "driver cost": of the slow class, before pruning
  double component_share = 0;             // of the slow instances' time
  int64_t patterns_ns = 0;                // of all patterns
  int64_t impactful_ns = 0;               // of those of high impact
  double itc = 0;                         // impactful_ns / component_ns
  double ttc = 0;                         // patterns_ns / component_ns
  int64_t pruned_ns = 0;                  // of the slow class: non-optimizable
  uint64_t exception_patterns = 0;
  int64_t exception_ns = 0;
  std::vector<std::string> unused_exceptions;  // globs that matched no pattern
  uint32_t max_segment = 0;
  RankBy rank = RankBy::kAverage;
  SignificanceOptions significance;
  std::string correction;  // what p_value was corrected by, a sentence
};

Result<ContrastResult> FindContrasts(const Evidence& evidence, const ContrastOptions& options);

}  // namespace culprit::causality
