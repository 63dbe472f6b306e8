// SPDX-License-Identifier: Apache-2.0
//
// PathPatterns: the whole root-to-leaf paths of aggregated wait graphs by their
// signature set tuple, and what each costs in each instance. Paths with equal
// tuples are one pattern (003 §4.2.3). Patterns are numbered in the order in which
// they were added; costs of a pattern are in the order of the instances.
//
// One thread at a time. 40 bytes a path, 16 a pattern and instance.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "causality/aggregate_graph.h"
#include "causality/evidence.h"
#include "causality/significance.h"
#include "causality/tuple.h"

namespace culprit::causality {

inline constexpr uint32_t kNoPattern = UINT32_MAX;

struct PathPattern {
  TupleId tuple = kEmptyTuple;
  uint64_t paths = 0;  // of the graphs it was added from
};

class PathPatterns {
 public:
  PathPatterns(const Evidence& evidence, TupleTable& tuples);

  // Every path of the graph; returns how many it has. A path that was added
  // before, from another graph, is the same path.
  uint64_t AddPaths(const AggregateGraph& graph);
  const std::vector<PathPattern>& patterns() const { return patterns_; }

  // What patterns cost in these instances: [pattern] -> by position in `instances`.
  // `counts` is how many events that were, summed.
  struct Costs {
    std::vector<std::vector<PatternCost>> costs;
    std::vector<uint64_t> counts;
  };
  Costs CostsIn(const std::vector<uint32_t>& instances) const;

 private:
  const Evidence& evidence_;
  TupleTable& tuples_;
  std::vector<PathPattern> patterns_;
  std::unordered_map<ChainIndex, uint32_t> pattern_at_;
  std::vector<uint32_t> pattern_of_;  // by tuple
};

// Whether any signature of the tuple matches any of the globs, and which.
// Returns the index of the first that does; globs.size(): none.
size_t MatchingGlob(const SignatureTuple& tuple, const std::vector<std::string>& globs);

}  // namespace culprit::causality
