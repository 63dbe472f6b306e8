// SPDX-License-Identifier: Apache-2.0
//
// PathSets: distinct sets of call paths of the units of one loop and kind, and
// their similarities. Jaccard's is shared / united, rounded down to a Fixed, over
// bit sets; that of Algorithm 1 goes over pairs of leaf paths (path_distance.h)
// and remembers those of distinct paths. Ranks are in the order of adding.
//
// SimilarPairs gives all pairs of at least `least`, pairs whose sizes rule it out
// being skipped; on several threads, in an order that does not depend on them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/linkage.h"
#include "guard/path_distance.h"
#include "guard/profile.h"
#include "guard/unit_types.h"

namespace culprit::guard {

class PathSets {
 public:
  // The profile's paths must outlive it.
  PathSets(const std::vector<CallPath>& paths, UnitDistance distance)
      : paths_(&paths), distance_(distance) {}

  // A set that is new, ascending. All are added before any is compared.
  void Add(const std::vector<uint32_t>& set);
  void Finish();

  size_t size() const { return sizes_.size(); }
  cluster::Fixed Similarity(uint32_t a, uint32_t b) const;
  cluster::Fixed UpperBound(uint32_t a, uint32_t b) const;
  std::vector<cluster::SimilarPair> SimilarPairs(cluster::Fixed least) const;
  std::unique_ptr<cluster::PairSource> MakeSource() const;

 private:
  std::vector<uint32_t> LeavesOf(const std::vector<uint32_t>& set) const;
  void FinishBits();
  void FinishLeaves();
  cluster::Fixed LeafSimilarity(uint32_t a, uint32_t b) const;

  const std::vector<CallPath>* paths_;
  UnitDistance distance_;
  std::vector<std::vector<uint32_t>> sets_;
  std::vector<uint32_t> sizes_;
  size_t words_ = 0;
  std::vector<uint64_t> bits_;  // of all sets
  // For Algorithm 1: function sequences of the distinct leaf paths; a set is a
  // list of these.
  std::vector<FunctionPath> leaves_;
  std::vector<std::vector<uint32_t>> leaf_sets_;
  std::vector<cluster::Fixed> leaf_similarities_;  // square, if it is small enough
};

}  // namespace culprit::guard
