// SPDX-License-Identifier: Apache-2.0
//
// Evidence: what impact, contrast and diff need to know of a corpus, with the
// events gone. Per scenario and component the summed times of 003 §3.2; per
// instance one row for each place on its chains (chain_forest.h) with its cost
// and number of events. Thresholds, classes, patterns and tests come later and
// are computed from it, so one pass over the traces serves them all.
//
// Evidence of one trace (extract.h) and of many is the same thing: parts add up
// (AddEvidence), in any order. Numbers of traces, signatures and so on depend on
// that order; what is computed from them does not: analyses go by names. All sums
// are integers. Memory is 32 bytes an instance, 64 a cell, and 16 a row until rows
// spill to disk (row_log.h).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/row_log.h"
#include "base/string_table.h"
#include "causality/chain_forest.h"
#include "causality/component.h"
#include "causality/propagated_wait.h"

namespace culprit::causality {

struct ChainRow {
  ChainIndex node = 0;
  uint32_t events = 0;
  int64_t cost_ns = 0;  // clipped to the instance
};

struct InstanceFacts {
  uint32_t trace = 0;      // index in Evidence::traces
  uint32_t index = 0;      // in the trace's own list of instances, or of those found
  uint32_t scenario = 0;   // index in Evidence::scenarios
  bool truncated = false;  // its chains were more than ExtractOptions allow
  int64_t dur_ns = 0;
  uint64_t rows_end = 0;  // its rows end here and begin where the last one's end
};

struct TraceFacts {
  std::string name;
  bool automatic = false;  // its instances were found, not marked
  uint64_t events = 0;
};

// Sums of damaged traces stay at the limit instead of overflowing.
inline void AddNs(int64_t& sum_ns, int64_t more_ns) {
  if (__builtin_add_overflow(sum_ns, more_ns, &sum_ns)) sum_ns = INT64_MAX;
}

inline constexpr uint32_t kAllScenarios = UINT32_MAX;
inline constexpr uint32_t kAllTraces = UINT32_MAX;

// The times of 003 §3.2 of one component.
struct ImpactTimes {
  int64_t wait_ns = 0;           // D_wait
  int64_t run_ns = 0;            // D_run
  int64_t distinct_wait_ns = 0;  // D_waitdist
  uint64_t waits = 0;            // top-level wait events counted, and
  uint64_t distinct_waits = 0;   // each once
  uint64_t instances = 0;        // with any of it

  void Add(const ImpactTimes& other);
  bool operator==(const ImpactTimes&) const = default;
};

inline uint64_t CellKey(uint32_t scenario, ComponentId component) {
  return uint64_t{scenario} << 32 | component;
}

struct ImpactCell {
  uint32_t trace = kAllTraces;
  uint32_t scenario = kAllScenarios;
  ComponentId component = kWholeSet;
  ImpactTimes times;

  bool operator==(const ImpactCell&) const = default;
};

// What was looked at and what was left out.
struct ExtractAccount {
  uint64_t events = 0;        // of the traces
  uint64_t nodes = 0;         // of wait graphs, over all instances
  uint64_t chain_events = 0;  // pairs of event and place on a chain
  int64_t ready_ns = 0;       // scheduling delays in the graphs; no part of chains
  uint64_t truncated_instances = 0;
  uint64_t instances_left_out = 0;  // of other scenarios
  uint64_t waits_without_stack = 0;
  int64_t idle_ns = 0;  // waiting for work, where instances were found automatically

  void Add(const ExtractAccount& other);
};

struct Evidence {
  std::vector<std::string> components;  // by ComponentId; 0 is the whole set
  StringTable signatures;               // by SignatureId
  ChainForest forest;
  RowLog<ChainRow> rows;
  LargeVector<InstanceFacts> instances;
  std::vector<TraceFacts> traces;
  std::vector<std::string> scenarios;
  // Sums over traces of every ⟨scenario or all, component⟩, and beside them per
  // trace those of ⟨all, component⟩ and ⟨scenario, whole set⟩: what the confidence
  // intervals are made of. Each key once.
  std::vector<ImpactCell> cells;
  LargeVector<ImpactCell> trace_cells;
  std::vector<PropagatedWait> propagated;  // those that cost most beyond once; few
  std::vector<std::string> not_chosen;     // modules or names that no glob chose; sorted
  // Where names and ⟨scenario, component⟩ stand, for adding; those of components and cells
  // are completed when something is added.
  std::unordered_map<std::string, uint32_t> component_index;
  std::unordered_map<std::string, uint32_t> scenario_index;
  std::unordered_map<uint64_t, uint32_t> cell_index;
  ExtractAccount account;
  Diagnostics diagnostics;
  std::vector<std::string> unreadable;  // traces that could not be read, with the reason

  uint64_t rows_begin(size_t instance) const {
    return instance == 0 ? 0 : instances[instance - 1].rows_end;
  }
  // "TRACE:INDEX"
  std::string InstanceName(size_t instance) const;
  // Empty for kNoSignature.
  std::string_view Signature(SignatureId id) const;
};

void AddEvidence(const Evidence& part, Evidence& sum);

// Instances by name of their trace and number: the order of everything that is
// not a plain sum, so that it does not depend on the order of merging.
// Of all scenarios or of one.
std::vector<uint32_t> CanonicalInstances(const Evidence& evidence,
                                         uint32_t scenario = kAllScenarios);

}  // namespace culprit::causality
