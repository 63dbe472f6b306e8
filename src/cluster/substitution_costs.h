// SPDX-License-Identifier: Apache-2.0
//
// SubstitutionCosts: what it costs to substitute a frame of one class by one of
// another, for the classes of a set of patterns, and for each class the least
// of these costs. Up to kDenseClasses classes all costs stand in a table (64 MB
// at most); beyond that they are worked out from the words when asked for.
// Immutable once made; any number of threads may read.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

inline constexpr size_t kDenseClasses = 4096;

class SubstitutionCosts {
 public:
  // The patterns must outlive it. A test may ask for a smaller table.
  explicit SubstitutionCosts(const WeightedPatterns& patterns,
                             size_t dense_classes = kDenseClasses);

  // 0 for a class and itself, and only then.
  Fixed Cost(uint32_t a, uint32_t b) const {
    if (!table_.empty()) return table_[a * cheapest_.size() + b];
    return patterns_->words().Substitution(patterns_->SymbolOf(a), patterns_->SymbolOf(b));
  }
  // Of a class by any other.
  Fixed Cheapest(uint32_t of_class) const { return cheapest_[of_class]; }

 private:
  void FindCheapest();

  const WeightedPatterns* patterns_;
  std::vector<Fixed> table_;
  std::vector<Fixed> cheapest_;
};

}  // namespace culprit::cluster
