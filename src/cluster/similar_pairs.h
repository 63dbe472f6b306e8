// SPDX-License-Identifier: Apache-2.0
//
// SimilarPairs: all pairs of patterns whose similarity reaches `least`, found
// without aligning most of the others: the CandidateIndex leaves out what cannot
// reach it by sums over classes, a closer look at the words of the pair leaves
// out most of the rest, and what remains is aligned. Also the source of any
// other pair's similarity, or a bound on it, for average linkage.
//
// The patterns must outlive it. Find runs on several threads and gives the same
// pairs in the same order for any number of them.
#pragma once

#include <memory>
#include <vector>

#include "cluster/candidate_index.h"
#include "cluster/fixed.h"
#include "cluster/linkage.h"
#include "cluster/match_gains.h"
#include "cluster/substitution_costs.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

class SimilarPairs {
 public:
  SimilarPairs(const WeightedPatterns& patterns, Fixed least);

  std::vector<SimilarPair> Find(size_t jobs) const;
  // For one thread; must not outlive this.
  std::unique_ptr<PairSource> MakeSource() const;

 private:
  void FindBelow(Rank begin, Rank end, std::vector<SimilarPair>& found) const;

  const WeightedPatterns* patterns_;
  Fixed least_;
  MatchGains gains_;
  SubstitutionCosts costs_;
  CandidateIndex index_;
};

}  // namespace culprit::cluster
