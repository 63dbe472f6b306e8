// SPDX-License-Identifier: Apache-2.0
//
// SubstitutionRows: what it costs to substitute each frame of one pattern, the
// bound one, by a frame of some class. A row is worked out when it is first
// asked for and kept until another pattern is bound, so that comparing one
// pattern with many similar ones hardly ever looks at words. Not thread safe:
// one a thread. O(length) a row, 16 bytes a class besides.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/substitution_costs.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

class SubstitutionRows {
 public:
  // Both must outlive the rows.
  SubstitutionRows(const WeightedPatterns& patterns, const SubstitutionCosts& costs);

  void Bind(Rank bound);
  Rank bound() const { return bound_; }

  struct Row {
    uint32_t number = 0;
    Fixed cheapest = 0;  // 0 if the bound pattern has a frame of the class
    // By how much the cheapest exceeds the cheapest of the class by any other;
    // 0 if the bound pattern has a frame of it.
    Fixed beyond = 0;
  };
  const Row& RowOf(uint32_t of_class) {
    StampedRow& row = rows_[of_class];
    if (row.stamp != stamp_) MakeRow(of_class, row);
    return row;
  }
  // By frame of the bound pattern; 0 is a match. Valid until the next RowOf.
  const Fixed* Costs(uint32_t number) const { return costs_.data() + size_t{number} * length_; }

 private:
  struct StampedRow : Row {
    uint32_t stamp = 0;  // of another binding: not made yet
  };
  void MakeRow(uint32_t of_class, StampedRow& row);

  const WeightedPatterns* patterns_;
  const SubstitutionCosts* class_costs_;
  Rank bound_ = 0;
  size_t length_ = 0;
  uint32_t stamp_ = 0;
  uint32_t made_ = 0;
  std::vector<StampedRow> rows_;  // by class
  std::vector<Fixed> costs_;
};

}  // namespace culprit::cluster
