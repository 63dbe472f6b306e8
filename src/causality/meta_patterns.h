// SPDX-License-Identifier: Apache-2.0
//
// MetaPatterns (003 §4.2.3): the signature set tuples of all path segments of 1..k
// nodes of two aggregated wait graphs, with C and N of the segments' last nodes
// summed per class, and which of them are contrasts. A segment whose last node has
// no signature gives none: its tuple is that of the shorter segment.
//
// Tuples belong to the TupleTable they were made with. O(nodes × k) to make.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "causality/aggregate_graph.h"
#include "causality/evidence.h"
#include "causality/tuple.h"

namespace culprit::causality {

// C and N of one tuple in the two classes.
struct ClassCosts {
  int64_t slow_ns = 0;
  uint64_t slow_count = 0;
  int64_t fast_ns = 0;
  uint64_t fast_count = 0;

  bool slow_only() const { return slow_count != 0 && fast_count == 0; }
  // (C/N) slow / (C/N) fast; none where the fast class has none or no cost.
  std::optional<double> Ratio() const;
  // By either of the two criteria.
  bool IsContrast(int64_t t_fast_ns, int64_t t_slow_ns) const;
};

class MetaPatterns {
 public:
  MetaPatterns(const Evidence& evidence, TupleTable& tuples, uint32_t max_segment);

  void AddSlow(const AggregateGraph& graph) { Add(graph, true); }
  void AddFast(const AggregateGraph& graph) { Add(graph, false); }

  // After both: settles which are contrasts.
  void FindContrasts(int64_t t_fast_ns, int64_t t_slow_ns);
  uint64_t size() const { return size_; }
  uint64_t contrasts() const { return contrasts_; }
  const ClassCosts& costs(TupleId tuple) const { return costs_[tuple]; }
  // The contrasts that this tuple contains, in no order.
  std::vector<TupleId> ContrastsIn(TupleId tuple) const;

 private:
  void Add(const AggregateGraph& graph, bool slow);

  const Evidence& evidence_;
  TupleTable& tuples_;
  uint32_t max_segment_;
  std::vector<ClassCosts> costs_;  // by tuple
  uint64_t size_ = 0;
  uint64_t contrasts_ = 0;
  // Contrasts by their smallest item, which a tuple that contains them has too.
  std::unordered_map<uint32_t, std::vector<TupleId>> by_item_;
};

}  // namespace culprit::causality
