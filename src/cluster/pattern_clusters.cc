// SPDX-License-Identifier: Apache-2.0
#include "cluster/pattern_clusters.h"

#include <algorithm>
#include <memory>

#include "base/parallel.h"
#include "cluster/linkage.h"
#include "cluster/similar_pairs.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {
namespace {

// 1 - sum / pairs, rounded down.
Fixed DistanceOf(const Joined& joined) {
  return static_cast<Fixed>((joined.pairs * kOne - joined.sum) / joined.pairs);
}

// Numbers what was joined, and returns for each rank the last number it is in.
std::vector<uint32_t> NumberMerges(const WeightedPatterns& patterns,
                                   const std::vector<Joined>& joined, std::vector<Merge>& merges) {
  const size_t count = patterns.size();
  std::vector<uint32_t> number_of(count);  // of the cluster whose lowest rank it is
  std::vector<Rank> lower(count);          // the lowest rank it was joined to, or itself
  for (Rank rank = 0; rank < count; ++rank) {
    number_of[rank] = patterns.IndexOf(rank);
    lower[rank] = rank;
  }
  for (const Joined& step : joined) {
    const auto [a, b] = std::minmax({number_of[step.a], number_of[step.b]});
    merges.push_back({a, b, DistanceOf(step)});
    number_of[step.a] = static_cast<uint32_t>(count + merges.size() - 1);
    lower[step.b] = step.a;
  }
  std::vector<uint32_t> last(count);
  for (Rank rank = 0; rank < count; ++rank) {
    lower[rank] = lower[lower[rank]];  // lower ranks have theirs already
    last[rank] = number_of[lower[rank]];
  }
  return last;
}

}  // namespace

Fixed DefaultCut(Linkage linkage) {
  // 0.55, 0.65 and 0.30, rounded down.
  constexpr uint64_t kHundredths = 100;
  switch (linkage) {
    case Linkage::kAverage:
      return static_cast<Fixed>(55 * uint64_t{kOne} / kHundredths);
    case Linkage::kComplete:
      return static_cast<Fixed>(65 * uint64_t{kOne} / kHundredths);
    case Linkage::kSingle:
      break;
  }
  return static_cast<Fixed>(30 * uint64_t{kOne} / kHundredths);
}

PatternClusters ClusterPatterns(const std::vector<PatternSymbols>& patterns,
                                const SymbolWords& words, const NgramCounts& counts,
                                const ClusterOptions& options) {
  const Fixed cut = std::min(options.cut.value_or(DefaultCut(options.linkage)), kOne);
  const WeightedPatterns weighted(patterns, words, counts, options.weight_to_leaf);
  const SimilarPairs pairs(weighted, kOne - cut);
  const std::vector<Joined> joined =
      Agglomerate(patterns.size(), pairs.Find(options.jobs),
                  {.linkage = options.linkage, .least = kOne - cut, .jobs = options.jobs},
                  [&] { return pairs.MakeSource(); });

  PatternClusters result;
  const std::vector<uint32_t> last = NumberMerges(weighted, joined, result.merges);
  std::vector<uint32_t> last_of(patterns.size());
  for (Rank rank = 0; rank < last.size(); ++rank) last_of[weighted.IndexOf(rank)] = last[rank];
  std::vector<uint32_t> cluster_of_number(patterns.size() + joined.size(), UINT32_MAX);
  for (const uint32_t number : last_of) {
    uint32_t& cluster = cluster_of_number[number];
    if (cluster == UINT32_MAX) cluster = result.clusters++;
    result.cluster_of.push_back(cluster);
  }
  return result;
}

}  // namespace culprit::cluster
