// SPDX-License-Identifier: Apache-2.0
//
// Agglomerate: hierarchical clustering of ranks 0 .. n-1 by average, complete or
// single linkage, down to a least similarity. Repeatedly joins the two clusters
// of greatest similarity; of equal ones those of the lowest ranks (a cluster
// stands for its lowest rank; with single linkage, those whose most similar
// members rank lowest). Similarities are integers and means are compared as
// fractions, so the result is exact.
//
// Only the pairs that reach `least` are given: two clusters without such a pair
// can be joined by no linkage, so the components of the graph they make are
// clustered apart, and in parallel. Average linkage asks the PairSource for
// other pairs when it must: when the mean of two clusters hangs on them.
//
// Nearest-neighbour chains: each step looks at the neighbours of one cluster.
// Memory: about 150 bytes an edge.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/pattern_clusters.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

// Similarities of pairs that are not edges. Used by one thread at a time.
class PairSource {
 public:
  virtual ~PairSource() = default;
  virtual Fixed UpperBound(Rank a, Rank b) = 0;
  virtual Fixed Similarity(Rank a, Rank b) = 0;
};

struct SimilarPair {
  Rank a = 0;
  Rank b = 0;
  Fixed similarity = 0;
};

// The clusters of lowest ranks a < b, joined at the mean similarity sum / pairs
// (pairs == 1 unless by average linkage).
struct Joined {
  Rank a = 0;
  Rank b = 0;
  uint64_t sum = 0;
  uint64_t pairs = 1;

  bool operator==(const Joined&) const = default;
};

// Whether x was joined before y: it has the greater mean, or the lower ranks.
bool JoinedBefore(const Joined& x, const Joined& y);

struct LinkageOptions {
  Linkage linkage = Linkage::kAverage;
  Fixed least = 0;  // every pair of at least this similarity is an edge
  size_t jobs = 1;
};

// In the order of joining. `edges` are those pairs, each once, in any order.
std::vector<Joined> Agglomerate(size_t count, const std::vector<SimilarPair>& edges,
                                const LinkageOptions& options,
                                const std::function<std::unique_ptr<PairSource>()>& make_source);

}  // namespace culprit::cluster
