// SPDX-License-Identifier: Apache-2.0
//
// WeightedPatterns: the patterns to be clustered, with everything about a frame
// that does not depend on the pair it is compared in: its class and its weight
// ω = Uni · (FBi + BBi) / 2 for the four cases of its neighbours being in its
// segment or not (docs/clustering.md). They stand in canonical order, by their symbols: a
// pattern is named by its rank, and the lower of two ranks is the left one.
//
// Of a pattern longer than kMaxFrames only the leaf-most frames are compared;
// up to there all costs and sums of an alignment fit their integers. Immutable
// once made; any number of threads may read. 20 bytes a frame.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/alignment.h"
#include "cluster/fixed.h"
#include "cluster/ngram_counts.h"
#include "cluster/symbol_words.h"

namespace culprit::cluster {

using Rank = uint32_t;

// Which neighbours of a frame are in its segment.
inline constexpr size_t kAlone = 0;
inline constexpr size_t kCallerToo = 1;
inline constexpr size_t kCalleeToo = 2;
inline constexpr size_t kBothToo = kCallerToo | kCalleeToo;
using FrameWeights = std::array<Fixed, 4>;

class WeightedPatterns {
 public:
  WeightedPatterns(const std::vector<PatternSymbols>& patterns, const SymbolWords& words,
                   const NgramCounts& counts, bool weight_to_leaf);

  size_t size() const { return index_of_.size(); }
  uint32_t IndexOf(Rank rank) const { return index_of_[rank]; }  // in the given vector

  std::span<const uint32_t> Classes(Rank rank) const { return Part(classes_, rank); }
  std::span<const FrameWeights> Weights(Rank rank) const { return Part(weights_, rank); }

  // The classes that occur are numbered 0, 1, 2 ...; frames of one class match.
  size_t classes() const { return symbol_of_class_.size(); }
  Symbol SymbolOf(uint32_t of_class) const { return symbol_of_class_[of_class]; }
  const SymbolWords& words() const { return *words_; }

 private:
  template <class T>
  std::span<const T> Part(const std::vector<T>& all, Rank rank) const {
    return std::span(all).subspan(begins_[rank], begins_[rank + 1] - begins_[rank]);
  }

  const SymbolWords* words_;
  std::vector<uint32_t> index_of_;
  std::vector<size_t> begins_;
  std::vector<uint32_t> classes_;  // of the frames of all patterns, by rank
  std::vector<FrameWeights> weights_;
  std::vector<Symbol> symbol_of_class_;
};

}  // namespace culprit::cluster
