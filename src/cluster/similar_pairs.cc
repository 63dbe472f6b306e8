// SPDX-License-Identifier: Apache-2.0
#include "cluster/similar_pairs.h"

#include <algorithm>

#include "base/parallel.h"
#include "cluster/pair_bound.h"
#include "cluster/pair_similarity.h"
#include "cluster/substitution_rows.h"

namespace culprit::cluster {
namespace {

// Ranks a task: enough to make up for its scratch, few enough to share out.
constexpr size_t kRanksPerTask = 64;

class Comparison final : public PairSource {
 public:
  Comparison(const WeightedPatterns& patterns, const MatchGains& gains,
             const SubstitutionCosts& costs)
      : rows_(patterns, costs),
        similarity_(patterns, rows_),
        bound_(patterns, gains, costs, rows_) {}

  Fixed UpperBound(Rank a, Rank b) override {
    Bind(a);
    return bound_.UpperBound(b);
  }
  bool MayReach(Rank a, const Candidate& candidate, Fixed least) {
    Bind(a);
    return bound_.MayReach(candidate, least);
  }
  Fixed Similarity(Rank a, Rank b) override {
    Bind(a);
    return similarity_.Of(b);
  }

 private:
  void Bind(Rank rank) {
    if (is_bound_ && rows_.bound() == rank) return;
    rows_.Bind(rank);
    bound_.BindGains();
    is_bound_ = true;
  }

  SubstitutionRows rows_;
  PairSimilarity similarity_;
  PairBound bound_;
  bool is_bound_ = false;
};

}  // namespace

SimilarPairs::SimilarPairs(const WeightedPatterns& patterns, Fixed least)
    : patterns_(&patterns),
      least_(least),
      gains_(patterns),
      costs_(patterns),
      index_(patterns, gains_, costs_, least) {}

std::unique_ptr<PairSource> SimilarPairs::MakeSource() const {
  return std::make_unique<Comparison>(*patterns_, gains_, costs_);
}

void SimilarPairs::FindBelow(Rank begin, Rank end, std::vector<SimilarPair>& found) const {
  Comparison comparison(*patterns_, gains_, costs_);
  std::vector<uint32_t> sums;
  std::vector<Candidate> candidates;
  for (Rank rank = begin; rank < end; ++rank) {
    index_.CandidatesBelow(rank, sums, candidates);
    for (const Candidate& candidate : candidates) {
      if (!comparison.MayReach(rank, candidate, least_)) continue;
      const Fixed similarity = comparison.Similarity(rank, candidate.rank);
      if (similarity >= least_) found.push_back({candidate.rank, rank, similarity});
    }
  }
}

std::vector<SimilarPair> SimilarPairs::Find(size_t jobs) const {
  const size_t count = patterns_->size();
  const size_t tasks = (count + kRanksPerTask - 1) / kRanksPerTask;
  std::vector<std::vector<SimilarPair>> parts(tasks);
  ParallelFor(tasks, jobs, [&](size_t task) {
    const size_t end = std::min(count, (task + 1) * kRanksPerTask);
    FindBelow(static_cast<Rank>(task * kRanksPerTask), static_cast<Rank>(end), parts[task]);
  });
  std::vector<SimilarPair> all;
  for (std::vector<SimilarPair>& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
    part = {};
  }
  return all;
}

}  // namespace culprit::cluster
