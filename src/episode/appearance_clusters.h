// SPDX-License-Identifier: Apache-2.0
//
// Top-down clustering (DIANA, Kaufman and Rousseeuw) of sets of symbols: which
// execution units do the same kind of thing. The distance of two sets is that
// of Jaccard. A cluster is split while two of its sets share less than half of
// what they have together: the set farthest from the others on average starts a
// splinter, and whoever is nearer to the splinter than to the rest follows.
//
// Only distinct sets are clustered, at most kMaxSets of them, the most frequent
// ones; others join the cluster of the nearest of those. Distances are fixed
// point: same input, same clusters, everywhere. O(sets^2) memory, O(sets^2) a split.
#pragma once

#include <cstdint>
#include <vector>

#include "episode/symbol.h"

namespace culprit::episode {

inline constexpr size_t kMaxSets = 1024;

struct SymbolSet {
  std::vector<Symbol> symbols;  // ascending, each once
  uint64_t weight = 0;          // units that have it
};

// The cluster of each set, numbered from 0 in the order of first appearance.
std::vector<uint32_t> ClusterSets(const std::vector<SymbolSet>& sets);

// 65536 x (1 - shared / together); 0 for two empty sets.
uint32_t JaccardDistance(const std::vector<Symbol>& a, const std::vector<Symbol>& b);

}  // namespace culprit::episode
