// SPDX-License-Identifier: Apache-2.0
#include "cluster/substitution_rows.h"

#include <algorithm>

namespace culprit::cluster {

SubstitutionRows::SubstitutionRows(const WeightedPatterns& patterns, const SubstitutionCosts& costs)
    : patterns_(&patterns), class_costs_(&costs), rows_(patterns.classes()) {}

void SubstitutionRows::Bind(Rank bound) {
  bound_ = bound;
  length_ = patterns_->Classes(bound).size();
  costs_.clear();
  made_ = 0;
  if (++stamp_ == 0) {  // after 2^32 bindings old stamps would look current
    for (StampedRow& row : rows_) row.stamp = 0;
    stamp_ = 1;
  }
}

void SubstitutionRows::MakeRow(uint32_t of_class, StampedRow& row) {
  row.stamp = stamp_;
  row.number = made_++;
  costs_.resize(size_t{made_} * length_);
  const std::span<const uint32_t> bound_classes = patterns_->Classes(bound_);
  Fixed* costs = costs_.data() + size_t{row.number} * length_;
  Fixed cheapest = kOne;
  // The bound classes' rows of the table stay in the cache from one row here to
  // the next.
  for (size_t i = 0; i < bound_classes.size(); ++i) {
    costs[i] = class_costs_->Cost(bound_classes[i], of_class);
    cheapest = std::min(cheapest, costs[i]);
  }
  row.cheapest = cheapest;
  row.beyond = row.cheapest == 0 ? 0 : row.cheapest - class_costs_->Cheapest(of_class);
}

}  // namespace culprit::cluster
