// SPDX-License-Identifier: Apache-2.0
//
// The clustering of docs/clustering.md written down in the plainest way: the oracle of the
// tests and the peer of the benchmark. Full dynamic programming for every pair,
// words compared in every cell, segments and weights as the text defines them;
// agglomeration that searches all pairs of clusters for every join, O(n^3).
// Shares nothing with the real one but SymbolWords, NgramCounts and the types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "cluster/alignment.h"
#include "cluster/linkage.h"
#include "cluster/ngram_counts.h"
#include "cluster/symbol_words.h"

namespace culprit::cluster {

// Leaf first.
inline std::vector<Step> NaiveSteps(const PatternSymbols& left, const PatternSymbols& right,
                                    const SymbolWords& words) {
  std::vector<std::vector<uint64_t>> cost(left.size() + 1, std::vector<uint64_t>(right.size() + 1));
  const auto substituted = [&](size_t i, size_t j) {
    return cost[i - 1][j - 1] + words.Substitution(left[i - 1], right[j - 1]);
  };
  for (size_t i = 0; i <= left.size(); ++i) {
    for (size_t j = 0; j <= right.size(); ++j) {
      if (i == 0 && j == 0) continue;
      uint64_t best = UINT64_MAX;
      if (i > 0 && j > 0) best = substituted(i, j);
      if (i > 0) best = std::min(best, cost[i - 1][j] + kOne);
      if (j > 0) best = std::min(best, cost[i][j - 1] + kOne);
      cost[i][j] = best;
    }
  }
  std::vector<Step> steps;
  for (size_t i = left.size(), j = right.size(); i > 0 || j > 0;) {
    const bool both = i > 0 && j > 0;
    const uint64_t here = cost[i][j];
    Step step = Step::kInsertion;
    if (both && substituted(i, j) == here && cost[i - 1][j - 1] == here) {
      step = Step::kMatch;
    } else if (both && substituted(i, j) == here) {
      step = Step::kSubstitution;
    } else if (i > 0 && cost[i - 1][j] + kOne == here) {
      step = Step::kDeletion;
    }
    steps.push_back(step);
    if (step != Step::kInsertion) --i;
    if (step != Step::kDeletion) --j;
  }
  return steps;
}

// ω of the frames [begin, end) of a pattern as one segment.
inline std::vector<uint64_t> NaiveWeights(const PatternSymbols& pattern, size_t begin, size_t end,
                                          const NgramCounts& counts) {
  std::vector<uint64_t> weights;
  for (size_t i = begin; i < end; ++i) {
    const uint64_t forward = i > begin ? counts.ForwardPair(pattern[i - 1], pattern[i]) : kOne;
    const uint64_t backward = i + 1 < end ? counts.BackwardPair(pattern[i], pattern[i + 1]) : kOne;
    weights.push_back(counts.Uni(pattern[i]) * (forward + backward) / (2 * uint64_t{kOne}));
  }
  return weights;
}

inline Fixed NaiveSimilarity(const PatternSymbols& a, const PatternSymbols& b,
                             const SymbolWords& words, const NgramCounts& counts) {
  const PatternSymbols& left = std::min(a, b);
  const PatternSymbols& right = std::max(a, b);
  std::vector<Step> steps = NaiveSteps(left, right, words);
  std::reverse(steps.begin(), steps.end());
  uint64_t matched = 0;  // doubled, as all weights here
  uint64_t unmatched = 0;
  size_t matches = 0;
  size_t i = 0;
  size_t j = 0;
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && steps[end] == steps[begin]) ++end;
    const size_t length = end - begin;
    const size_t of_left = steps[begin] != Step::kInsertion ? length : 0;
    const size_t of_right = steps[begin] != Step::kDeletion ? length : 0;
    const std::vector<uint64_t> l = NaiveWeights(left, i, i + of_left, counts);
    const std::vector<uint64_t> r = NaiveWeights(right, j, j + of_right, counts);
    for (size_t k = 0; k < length; ++k) {
      if (steps[begin] == Step::kMatch) {
        matched += l[k] + r[k];
        ++matches;
      } else if (steps[begin] == Step::kSubstitution) {
        unmatched += words.Substitution(left[i + k], right[j + k]) * (l[k] + r[k]) / kOne;
      } else {
        unmatched += 2 * (of_left > 0 ? l[k] : r[k]);
      }
    }
    i += of_left;
    j += of_right;
  }
  if (matched + unmatched > 0) return static_cast<Fixed>(matched * kOne / (matched + unmatched));
  return steps.empty() ? kOne : static_cast<Fixed>(matches * uint64_t{kOne} / steps.size());
}

using SimilarityMatrix = std::vector<std::vector<Fixed>>;

// Members must be given by rank: [i][j] is the similarity of ranks i and j.
inline std::vector<Joined> NaiveAgglomerate(const SimilarityMatrix& similarity, Linkage linkage,
                                            Fixed least) {
  std::vector<std::vector<Rank>> clusters;
  for (Rank rank = 0; rank < similarity.size(); ++rank) clusters.push_back({rank});
  // What two clusters would be joined at, and the ranks that settle a tie.
  const auto candidate = [&](const std::vector<Rank>& x, const std::vector<Rank>& y) {
    Joined joined{std::min(x[0], y[0]), std::max(x[0], y[0]), 0, 1};
    std::pair<Rank, Rank> tie = {joined.a, joined.b};
    if (linkage == Linkage::kAverage) joined.pairs = x.size() * y.size();
    bool first = true;
    for (const Rank a : x) {
      for (const Rank b : y) {
        const uint64_t s = similarity[a][b];
        const std::pair<Rank, Rank> pair = {std::min(a, b), std::max(a, b)};
        if (linkage == Linkage::kAverage) {
          joined.sum += s;
        } else if (linkage == Linkage::kComplete) {
          joined.sum = first ? s : std::min(joined.sum, s);
        } else if (first || s > joined.sum || (s == joined.sum && pair < tie)) {
          joined.sum = s;
          tie = pair;
        }
        first = false;
      }
    }
    return std::pair(joined, tie);
  };
  std::vector<Joined> result;
  while (true) {
    bool found = false;
    std::pair<Joined, std::pair<Rank, Rank>> best;
    size_t best_x = 0;
    size_t best_y = 0;
    for (size_t x = 0; x < clusters.size(); ++x) {
      for (size_t y = x + 1; y < clusters.size(); ++y) {
        const auto next = candidate(clusters[x], clusters[y]);
        if (next.first.sum < least * next.first.pairs) continue;
        const uint64_t ours = next.first.sum * best.first.pairs;
        const uint64_t theirs = best.first.sum * next.first.pairs;
        if (found && (ours < theirs || (ours == theirs && best.second < next.second))) continue;
        found = true;
        best = next;
        best_x = x;
        best_y = y;
      }
    }
    if (!found) return result;
    result.push_back(best.first);
    std::vector<Rank>& x = clusters[best_x];
    x.insert(x.end(), clusters[best_y].begin(), clusters[best_y].end());
    std::sort(x.begin(), x.end());
    clusters.erase(clusters.begin() + static_cast<ptrdiff_t>(best_y));
  }
}

}  // namespace culprit::cluster
