// SPDX-License-Identifier: Apache-2.0
//
// Evidence: what mining needs to know of a corpus, with the events gone. Per
// instance one row for each place on its path (path_forest.h) with the cost and
// the number of events there; per distinct stack how often it occurs anywhere.
// Everything later (patterns, clusters, metrics, coverage) is computed from it.
//
// Evidence of one trace and of many is the same thing: parts add up, and adding
// them in the order of the catalog gives the same bytes whatever the number of
// threads. Memory is the distinct stacks and places and 32 bytes an instance, until
// they do not fit any more (large_memory.h), and 16 bytes a row until rows spill to
// disk (row_log.h); traces themselves are read one per
// thread and dropped (gather.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/large_memory.h"
#include "base/row_log.h"
#include "stackmine/path_forest.h"
#include "stackmine/stack_table.h"
#include "waitgraph/area.h"
#include "waitgraph/auto_instances.h"

namespace culprit::stackmine {

// What one instance spent at one node.
struct PathRow {
  NodeIndex node = 0;
  uint32_t events = 0;
  int64_t cost_ns = 0;
};

struct InstanceFacts {
  uint32_t trace = 0;     // index in Evidence::traces
  uint32_t index = 0;     // in the trace's own list of instances, or of those found
  uint32_t scenario = 0;  // index in Evidence::scenarios
  int64_t dur_ns = 0;
  uint64_t rows_end = 0;  // its rows end here and begin where the last one's end
};

struct TraceFacts {
  std::string name;
  bool automatic = false;  // its instances were found, not marked
  uint64_t events = 0;
};

// Where the time of the instances is, and what was not looked at. The leaves
// sum to total_ns in the scopes critical-path and thread.
struct Account {
  waitgraph::AreaAccount area;
  int64_t not_sampled_ns = 0;  // part of area.running_ns
  int64_t aoi_ns = 0;          // of the instances' time, each nanosecond once
  int64_t summed_wait_ns = 0;  // waits that are known only as sums (trace::IsSumOfWaits)
  uint64_t waits_without_stack = 0;
  uint64_t instances_left_out = 0;  // by scenario or duration
  int64_t instances_left_out_ns = 0;
  int64_t idle_ns = 0;  // waiting for work, where instances were found automatically
  int64_t idle_threads_ns = 0;
  uint64_t idle_threads = 0;

  void Add(const Account& other);
};

struct Evidence {
  StackTable stacks;
  // By stack: running and wait events with it anywhere in the traces, and the
  // cost of its events in the area of interest with each event counted once,
  // however many instances it was charged to.
  LargeVector<uint64_t> occurrences;
  LargeVector<int64_t> distinct_wait_ns;
  LargeVector<int64_t> distinct_run_ns;
  PathForest forest;
  RowLog<PathRow> rows;
  LargeVector<InstanceFacts> instances;
  std::vector<TraceFacts> traces;
  std::vector<std::string> scenarios;
  std::unordered_map<std::string, uint32_t> scenario_index;  // where they stand, for adding
  std::map<std::pair<std::string, std::string>, waitgraph::Role> roles;  // scenario, idle frame
  Account account;
  Diagnostics diagnostics;
  std::vector<std::string> unreadable;  // traces that could not be read, with the reason
  waitgraph::Scope scope = waitgraph::Scope::kCriticalPath;

  uint64_t rows_begin(size_t instance) const {
    return instance == 0 ? 0 : instances[instance - 1].rows_end;
  }
  // "TRACE:INDEX"
  std::string InstanceName(size_t instance) const;
};

// Appends `part`. Order matters only for the numbering.
void AddEvidence(const Evidence& part, Evidence& sum);

}  // namespace culprit::stackmine
