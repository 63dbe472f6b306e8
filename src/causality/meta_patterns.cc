// SPDX-License-Identifier: Apache-2.0
#include "causality/meta_patterns.h"

namespace culprit::causality {

std::optional<double> ClassCosts::Ratio() const {
  if (slow_count == 0 || fast_count == 0 || fast_ns == 0) return std::nullopt;
  const double slow = static_cast<double>(slow_ns) / static_cast<double>(slow_count);
  const double fast = static_cast<double>(fast_ns) / static_cast<double>(fast_count);
  return slow / fast;
}

bool ClassCosts::IsContrast(int64_t t_fast_ns, int64_t t_slow_ns) const {
  if (slow_count == 0) return false;
  if (fast_count == 0) return true;
  if (fast_ns == 0) return slow_ns > 0;
  return Ratio().value_or(0) > static_cast<double>(t_slow_ns) / static_cast<double>(t_fast_ns);
}

MetaPatterns::MetaPatterns(const Evidence& evidence, TupleTable& tuples, uint32_t max_segment)
    : evidence_(evidence), tuples_(tuples), max_segment_(max_segment) {}

void MetaPatterns::Add(const AggregateGraph& graph, bool slow) {
  for (const AggregateNode& last : graph.nodes) {
    TupleId tuple = kEmptyTuple;
    const AggregateNode* node = &last;
    for (uint32_t length = 1; length <= max_segment_; ++length) {
      tuple = tuples_.With(tuple, evidence_.forest.nodes()[node->chain]);
      if (tuple == kEmptyTuple) break;
      if (tuple >= costs_.size()) costs_.resize(tuple + 1);
      ClassCosts& costs = costs_[tuple];
      if (slow) {
        AddNs(costs.slow_ns, last.cost_ns);
        costs.slow_count += last.count;
      } else {
        AddNs(costs.fast_ns, last.cost_ns);
        costs.fast_count += last.count;
      }
      if (node->parent == UINT32_MAX) break;
      node = &graph.nodes[node->parent];
    }
  }
}

void MetaPatterns::FindContrasts(int64_t t_fast_ns, int64_t t_slow_ns) {
  for (TupleId tuple = 0; tuple < costs_.size(); ++tuple) {
    const ClassCosts& costs = costs_[tuple];
    if (costs.slow_count == 0 && costs.fast_count == 0) continue;
    ++size_;
    if (!costs.IsContrast(t_fast_ns, t_slow_ns)) continue;
    ++contrasts_;
    by_item_[tuples_.Items(tuple).front()].push_back(tuple);
  }
}

std::vector<TupleId> MetaPatterns::ContrastsIn(TupleId tuple) const {
  std::vector<TupleId> found;
  for (const uint32_t item : tuples_.Items(tuple)) {
    const auto it = by_item_.find(item);
    if (it == by_item_.end()) continue;
    for (const TupleId part : it->second) {
      if (tuples_.Contains(tuple, part)) found.push_back(part);
    }
  }
  return found;
}

}  // namespace culprit::causality
