// SPDX-License-Identifier: Apache-2.0
#include "causality/aggregate_graph.h"

#include <algorithm>

namespace culprit::causality {
namespace {

// Of the class, by node: the forest may be much larger than what one scenario uses.
std::vector<AggregateNode> SumByNode(const Evidence& evidence,
                                     const std::vector<uint32_t>& instances) {
  std::vector<ChainRow> rows;
  for (const uint32_t i : instances) {
    for (uint64_t r = evidence.rows_begin(i); r < evidence.instances[i].rows_end; ++r) {
      rows.push_back(evidence.rows[r]);
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const ChainRow& a, const ChainRow& b) { return a.node < b.node; });
  std::vector<AggregateNode> sums;
  for (const ChainRow& row : rows) {
    if (sums.empty() || sums.back().chain != row.node) sums.push_back({.chain = row.node});
    sums.back().count += row.events;
    AddNs(sums.back().cost_ns, row.cost_ns);
  }
  return sums;
}

// The place of a node, or UINT32_MAX.
uint32_t PlaceOf(const std::vector<AggregateNode>& nodes, ChainIndex chain) {
  const auto it = std::lower_bound(
      nodes.begin(), nodes.end(), chain,
      [](const AggregateNode& node, ChainIndex value) { return node.chain < value; });
  if (it == nodes.end() || it->chain != chain) return UINT32_MAX;
  return static_cast<uint32_t>(it - nodes.begin());
}

}  // namespace

bool IsPathEnd(ChainKind kind) {
  return kind != ChainKind::kWait && kind != ChainKind::kDeviceWait;
}

AggregateGraph Aggregate(const Evidence& evidence, const std::vector<uint32_t>& instances,
                         const AggregateOptions& options) {
  const std::vector<ChainNode>& chains = evidence.forest.nodes();
  AggregateGraph graph;
  for (const uint32_t i : instances) AddNs(graph.instances_ns, evidence.instances[i].dur_ns);
  for (AggregateNode node : SumByNode(evidence, instances)) {
    const ChainNode& chain = chains[node.chain];
    const bool root = chain.parent == kNoChain;
    if (root) AddNs(graph.root_ns, node.cost_ns);
    if (root && options.prune_hardware && chain.kind == ChainKind::kDeviceWait) {
      AddNs(graph.pruned_ns, node.cost_ns);
      ++graph.pruned_roots;
      graph.pruned_events += node.count;
      continue;
    }
    if (!root) node.parent = PlaceOf(graph.nodes, chain.parent);
    // What hangs under a pruned root goes with it.
    if (!root && node.parent == UINT32_MAX) continue;
    node.leaf = IsPathEnd(chain.kind);
    graph.nodes.push_back(node);
  }
  return graph;
}

}  // namespace culprit::causality
