// SPDX-License-Identifier: Apache-2.0
//
// PairSimilarity: how similar two patterns are, by their alignment (docs/clustering.md,
// StackMine §VI.B): what the matches weigh, divided by what all segments weigh.
// A segment is a maximal run of one kind of step; a frame's weight depends on
// which of its neighbours are in its segment. A match weighs the mean of its two
// frames, as a substitution does times its cost: they differ where the symbols
// do, or the distances from the leaf. 0/0: matched by all steps.
//
// The pattern of lower rank is the left one, so similarity is symmetric. Not
// thread safe: one a thread, with the rows it works on.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/alignment.h"
#include "cluster/fixed.h"
#include "cluster/substitution_rows.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

class PairSimilarity {
 public:
  // Both must outlive it.
  PairSimilarity(const WeightedPatterns& patterns, SubstitutionRows& rows)
      : patterns_(&patterns), rows_(&rows) {}

  // Of the pattern that is bound in the rows and `other`, rounded down.
  Fixed Of(Rank other);

 private:
  Fixed Weigh(const std::vector<Step>& steps, Rank left, Rank right, bool bound_is_left) const;

  const WeightedPatterns* patterns_;
  SubstitutionRows* rows_;
  std::vector<const Fixed*> costs_;  // by frame of the other pattern
  Alignment alignment_;
};

}  // namespace culprit::cluster
