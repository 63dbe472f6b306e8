// SPDX-License-Identifier: Apache-2.0
//
// CandidateIndex: which patterns may be similar enough to a given one, without
// looking at them one by one. An inverted index from frame classes to patterns:
// a pattern that shares a class gains what MatchGains says, a frame without a
// partner costs at least the cheapest substitution of its class by any other
// class that occurs, and the longer pattern has frames to delete, which costs
// more. A pair that is left out has Sim < `least` for certain.
//
// Immutable once made; any number of threads may ask. Asking takes the patterns
// that share a class, once for each class. 20 bytes a frame.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/match_gains.h"
#include "cluster/substitution_costs.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

// `spare`: by how much (1 - least) * matched - least * unmatched may exceed 0 at
// most, in units of 2^-kSpareBits: such that kMaxFrames of them fit 32 bits.
struct Candidate {
  Rank rank = 0;
  uint32_t spare = 0;
};
inline constexpr uint32_t kSpareBits = 14;

class CandidateIndex {
 public:
  // `gains` and `costs` must outlive the index.
  CandidateIndex(const WeightedPatterns& patterns, const MatchGains& gains,
                 const SubstitutionCosts& costs, Fixed least);

  // The ranks below `rank` whose similarity to it may reach `least`, ascending.
  // `sums` is the caller's scratch, so that it is not allocated each time.
  void CandidatesBelow(Rank rank, std::vector<uint32_t>& sums, std::vector<Candidate>& found) const;

 private:
  // What a pattern gains towards `least` if its frames of a class match.
  struct Posting {
    Rank rank = 0;
    uint32_t caller_class = 0;
    uint32_t apart = 0;
    uint32_t together = 0;
  };
  Posting MakePosting(Rank rank, const MatchGain& gain) const;
  void AddLightest(std::span<const FrameWeights> weights);
  uint32_t LeastDeleted(Rank a, Rank b) const;

  const MatchGains* gains_;
  const SubstitutionCosts* costs_;
  Fixed least_;
  std::vector<Posting> postings_;  // by class, then rank
  std::vector<size_t> begins_;     // of a class
  std::vector<uint32_t> needed_;   // by rank: its share of what a pair must gain
  // By rank, from where its frames' begin on: what its 0, 1, 2 ... lightest frames need.
  std::vector<uint32_t> lightest_;
  std::vector<size_t> lightest_begins_;
};

}  // namespace culprit::cluster
