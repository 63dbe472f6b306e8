// SPDX-License-Identifier: Apache-2.0
#include "causality/aggregate_graph.h"

#include <algorithm>

namespace culprit::causality {
namespace {

// Of the class, by node. Rows are many and may be on disk, so they are not held; the
// nodes of the forest are in memory anyway.
std::vector<AggregateNode> SumByNode(const Evidence& evidence,
                                     const std::vector<uint32_t>& instances) {
  std::vector<uint32_t> place(evidence.forest.nodes().size(), UINT32_MAX);
  std::vector<AggregateNode> sums;
  RowCursor rows(evidence.rows);
  for (const uint32_t i : instances) {
    for (const ChainRow& row : rows.Read(evidence.rows_begin(i), evidence.instances[i].rows_end)) {
      if (place[row.node] == UINT32_MAX) {
        place[row.node] = static_cast<uint32_t>(sums.size());
        sums.push_back({.chain = row.node});
      }
      AggregateNode& sum = sums[place[row.node]];
      sum.count += row.events;
      AddNs(sum.cost_ns, row.cost_ns);
    }
  }
  std::sort(sums.begin(), sums.end(),
            [](const AggregateNode& a, const AggregateNode& b) { return a.chain < b.chain; });
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
  const LargeVector<ChainNode>& chains = evidence.forest.nodes();
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
