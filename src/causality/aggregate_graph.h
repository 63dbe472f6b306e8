// SPDX-License-Identifier: Apache-2.0
//
// AggregateGraph: the aggregated wait graph of a class of instances (003 §4.2.2,
// Algorithm 1): the chain forest with cost C and count N of each node summed over
// the instances, and reduced: roots that are waits for a device over its hardware
// leaf are pruned, for nothing there travelled through anybody else.
//
// Invariant: the nodes are the chain nodes that the class uses, parents before
// children. O(rows of the class + nodes of the forest).
#pragma once

#include <cstdint>
#include <vector>

#include "causality/evidence.h"

namespace culprit::causality {

// Whether whole paths end at such a node. Every wait has something under it, if
// only the leaf that says so.
bool IsPathEnd(ChainKind kind);

struct AggregateNode {
  ChainIndex chain = 0;          // in Evidence::forest
  uint32_t parent = UINT32_MAX;  // in AggregateGraph::nodes; UINT32_MAX: a root
  bool leaf = true;
  uint64_t count = 0;   // N
  int64_t cost_ns = 0;  // C
};

struct AggregateGraph {
  std::vector<AggregateNode> nodes;
  int64_t instances_ns = 0;    // summed durations of the class
  int64_t root_ns = 0;         // C of all roots before pruning: the component's cost
  int64_t pruned_ns = 0;       // of it, C of pruned roots
  uint64_t pruned_roots = 0;   // nodes
  uint64_t pruned_events = 0;  // N of those
};

struct AggregateOptions {
  bool prune_hardware = true;
};

AggregateGraph Aggregate(const Evidence& evidence, const std::vector<uint32_t>& instances,
                         const AggregateOptions& options = {});

}  // namespace culprit::causality
