// SPDX-License-Identifier: Apache-2.0
#include "causality/path_patterns.h"

#include <algorithm>

#include "base/glob.h"

namespace culprit::causality {

PathPatterns::PathPatterns(const Evidence& evidence, TupleTable& tuples)
    : evidence_(evidence), tuples_(tuples) {}

uint64_t PathPatterns::AddPaths(const AggregateGraph& graph) {
  std::vector<TupleId> tuple_of(graph.nodes.size());
  uint64_t paths = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const AggregateNode& node = graph.nodes[i];
    const TupleId above = node.parent == UINT32_MAX ? kEmptyTuple : tuple_of[node.parent];
    tuple_of[i] = tuples_.With(above, evidence_.forest.nodes()[node.chain]);
    if (!node.leaf) continue;
    ++paths;
    const auto [at, added] = pattern_at_.try_emplace(node.chain, kNoPattern);
    if (!added) continue;
    if (tuple_of[i] >= pattern_of_.size()) pattern_of_.resize(tuple_of[i] + 1, kNoPattern);
    uint32_t& pattern = pattern_of_[tuple_of[i]];
    if (pattern == kNoPattern) {
      pattern = static_cast<uint32_t>(patterns_.size());
      patterns_.push_back({.tuple = tuple_of[i]});
    }
    ++patterns_[pattern].paths;
    at->second = pattern;
  }
  return paths;
}

PathPatterns::Costs PathPatterns::CostsIn(const std::vector<uint32_t>& instances) const {
  Costs result;
  result.costs.resize(patterns_.size());
  result.counts.resize(patterns_.size());
  RowCursor rows(evidence_.rows);
  for (uint32_t position = 0; position < instances.size(); ++position) {
    const uint32_t i = instances[position];
    for (const ChainRow& row :
         rows.Read(evidence_.rows_begin(i), evidence_.instances[i].rows_end)) {
      const auto at = pattern_at_.find(row.node);
      if (at == pattern_at_.end()) continue;
      const uint32_t pattern = at->second;
      std::vector<PatternCost>& costs = result.costs[pattern];
      if (costs.empty() || costs.back().instance != position) costs.push_back({position, 0});
      AddNs(costs.back().cost_ns, row.cost_ns);
      result.counts[pattern] += row.events;
    }
  }
  return result;
}

size_t MatchingGlob(const SignatureTuple& tuple, const std::vector<std::string>& globs) {
  const auto matches = [](const std::vector<std::string>& names, const std::string& glob) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return MatchesGlob(glob, name) ||
             (glob.find('!') == std::string::npos &&
              MatchesGlob(glob, std::string_view(name).substr(0, name.find('!'))));
    });
  };
  for (size_t i = 0; i < globs.size(); ++i) {
    if (matches(tuple.wait, globs[i]) || matches(tuple.unwait, globs[i]) ||
        matches(tuple.running, globs[i])) {
      return i;
    }
  }
  return globs.size();
}

}  // namespace culprit::causality
