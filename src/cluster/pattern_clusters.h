// SPDX-License-Identifier: Apache-2.0
//
// ClusterPatterns: groups patterns that are variants of one behaviour
// (StackMine §VI; docs/clustering.md): alignment, weighted similarity,
// agglomeration on 1 - Sim while it is at most `cut`. The same patterns give the
// same clusters whatever their order and the number of threads: ties are settled
// by the patterns' symbols (number symbols by name, and the order in which
// traces were read plays no part either). Memory: about 200 bytes a pair that
// reaches the cut, and a table of up to 64 MB. Common parts: what all members of
// a cluster share, as a sequence of segments, each shared or varying (001
// figure 5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/ngram_counts.h"
#include "cluster/symbol_words.h"

namespace culprit::cluster {

enum class Linkage : uint8_t { kAverage, kComplete, kSingle };
// 0.55, 0.65, 0.30.
Fixed DefaultCut(Linkage linkage);

struct ClusterOptions {
  Linkage linkage = Linkage::kAverage;
  std::optional<Fixed> cut;     // unset: DefaultCut(linkage)
  bool weight_to_leaf = false;  // frames count e^(-0.2 * distance from the leaf)
  size_t jobs = 0;              // threads; 0: all hardware threads
};

// One step of the agglomeration: clusters `a` and `b` (a number below the
// number of patterns is that pattern, n + i is what step i made) joined at
// `distance`.
struct Merge {
  uint32_t a = 0;
  uint32_t b = 0;
  Fixed distance = 0;

  bool operator==(const Merge&) const = default;
};

struct PatternClusters {
  std::vector<uint32_t> cluster_of;  // by pattern; clusters are numbered by their first pattern
  uint32_t clusters = 0;
  std::vector<Merge> merges;  // all at or below the cut, by distance
};

PatternClusters ClusterPatterns(const std::vector<PatternSymbols>& patterns,
                                const SymbolWords& words, const NgramCounts& counts,
                                const ClusterOptions& options);

// A stretch of a cluster's frames: shared by all members (`shared` holds it), or
// different (one variant per distinct content, empty where a member has
// nothing there; `members` says which member has which variant).
struct CommonSegment {
  PatternSymbols shared;
  std::vector<PatternSymbols> variants;
  std::vector<uint32_t> variant_of_member;  // empty for a shared segment
};

// Aligns members progressively to `members.front()`'s common part; what stays
// matched in all is shared. O(members * length^2).
std::vector<CommonSegment> CommonParts(const std::vector<PatternSymbols>& members,
                                       const SymbolWords& words);

}  // namespace culprit::cluster
