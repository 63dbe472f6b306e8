// SPDX-License-Identifier: Apache-2.0
//
// PairBound: a similarity that the bound pattern and another one cannot exceed,
// for a fraction of the cost of aligning them. Matches weigh at most what
// MatchGains says. A frame without a partner of its class is deleted or
// substituted by a frame of the other pattern, and the cheapest of these
// substitutions bounds from below what it adds to the denominator.
//
// Works on the rows of the pattern bound last; not thread safe, one a thread.
// O(length) a pair, plus the rows' minimum by columns.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/candidate_index.h"
#include "cluster/fixed.h"
#include "cluster/match_gains.h"
#include "cluster/substitution_rows.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

class PairBound {
 public:
  // All must outlive the bound.
  PairBound(const WeightedPatterns& patterns, const MatchGains& gains,
            const SubstitutionCosts& costs, SubstitutionRows& rows);

  // After each Bind of the rows.
  void BindGains();
  // Similarity(bound, other) <= UpperBound(other).
  Fixed UpperBound(Rank other);
  // Whether the similarity to a candidate of an index for `least` may reach it:
  // what the index counted as unmatched at the cheapest substitution by any
  // class, counted at the cheapest by a class that the other pattern has.
  bool MayReach(const Candidate& candidate, Fixed least);

 private:
  uint64_t MostMatched(Rank other) const;
  void FindCheapest(Rank other);

  const WeightedPatterns* patterns_;
  const MatchGains* gains_;
  const SubstitutionCosts* costs_;
  SubstitutionRows* rows_;
  std::vector<uint32_t> gain_of_class_;  // place in the bound pattern's gains, or kNoClass
  Rank bound_ = kNoClass;
  std::vector<Fixed> cheapest_;  // by frame of the bound pattern
};

}  // namespace culprit::cluster
