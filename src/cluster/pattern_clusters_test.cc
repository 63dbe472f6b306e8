// SPDX-License-Identifier: Apache-2.0
#include "cluster/pattern_clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "cluster/naive_clustering.h"
#include "cluster/random_patterns.h"

namespace culprit::cluster::TEST_FILE {
namespace {

constexpr Linkage kLinkages[] = {Linkage::kAverage, Linkage::kComplete, Linkage::kSingle};

bool operator==(const PatternClusters& a, const PatternClusters& b) {
  return a.cluster_of == b.cluster_of && a.clusters == b.clusters && a.merges == b.merges;
}

// Clusters and merges from the naive joins.
PatternClusters NaiveClusters(const RandomPatterns& made, Linkage linkage, Fixed cut) {
  const size_t count = made.patterns.size();
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return made.patterns[a] < made.patterns[b]; });
  SimilarityMatrix matrix(count, std::vector<Fixed>(count, kOne));
  for (Rank a = 0; a < count; ++a) {
    for (Rank b = 0; b < count; ++b) {
      matrix[a][b] = NaiveSimilarity(made.patterns[order[a]], made.patterns[order[b]], made.words,
                                     made.counts);
    }
  }
  std::vector<uint32_t> number(count);
  std::vector<uint32_t> group(count);
  for (Rank rank = 0; rank < count; ++rank) {
    number[rank] = order[rank];
    group[order[rank]] = rank;
  }
  PatternClusters result;
  for (const Joined& joined : NaiveAgglomerate(matrix, linkage, kOne - cut)) {
    const auto step = static_cast<uint32_t>(count + result.merges.size());
    const auto distance =
        static_cast<Fixed>((uint64_t{kOne} * joined.pairs - joined.sum) / joined.pairs);
    result.merges.push_back({std::min(number[joined.a], number[joined.b]),
                             std::max(number[joined.a], number[joined.b]), distance});
    number[joined.a] = step;
    std::replace(group.begin(), group.end(), joined.b, joined.a);
  }
  std::map<uint32_t, uint32_t> cluster_of;
  for (const uint32_t g : group) {
    const auto next = static_cast<uint32_t>(cluster_of.size());
    result.cluster_of.push_back(cluster_of.try_emplace(g, next).first->second);
  }
  result.clusters = static_cast<uint32_t>(cluster_of.size());
  return result;
}

RandomPatternOptions OptionsOf(uint32_t seed) {
  RandomPatternOptions options;
  options.seed = seed;
  options.patterns = 2 + seed % 25;
  options.symbols = 4 + seed % 17;
  options.words = 2 + seed % 7;
  options.longest = 3 + seed % 9;
  return options;
}

TEST(PatternClustersTest, AreThoseOfTheNaiveMethodForAnyNumberOfThreads) {
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    const RandomPatterns made = MakeRandomPatterns(OptionsOf(seed));
    for (const Linkage linkage : kLinkages) {
      const Fixed cut = seed % 4 == 0 ? kOne * (seed % 11) / 10 : DefaultCut(linkage);
      const PatternClusters expected = NaiveClusters(made, linkage, std::min(cut, kOne));
      for (const size_t jobs : {1, 2, 8}) {
        const PatternClusters found = ClusterPatterns(
            made.patterns, made.words, made.counts, {.linkage = linkage, .cut = cut, .jobs = jobs});
        ASSERT_TRUE(found == expected)
            << "seed " << seed << ", linkage " << static_cast<int>(linkage);
      }
    }
  }
}

TEST(PatternClustersTest, AreThoseOfTheNaiveMethodForAllSmallPatterns) {
  RandomPatterns made;
  made.words.AddNamed("a_x");
  made.words.AddNamed("b_x");
  made.words.AddUnnamed();
  for (uint32_t code = 0; code < 256; ++code) {  // four frames, each a symbol or none
    PatternSymbols pattern;
    for (uint32_t rest = code; pattern.size() < 4 && rest > 0; rest /= 4) {
      if (rest % 4 > 0) pattern.push_back(rest % 4 - 1);
    }
    made.patterns.push_back(std::move(pattern));
  }
  std::sort(made.patterns.begin(), made.patterns.end());
  made.patterns.erase(std::unique(made.patterns.begin(), made.patterns.end()), made.patterns.end());
  ASSERT_EQ(made.patterns.size(), 121U);
  made.counts.AddStack(PatternSymbols{0, 1, 2}, 3);
  made.counts.AddStack(PatternSymbols{2, 2, 1}, 2);
  made.counts.AddStack(PatternSymbols{0}, 3);
  for (const Linkage linkage : kLinkages) {
    for (const Fixed cut : {kOne / 10, kOne / 3, DefaultCut(linkage)}) {
      EXPECT_TRUE(ClusterPatterns(made.patterns, made.words, made.counts,
                                  {.linkage = linkage, .cut = cut, .jobs = 1}) ==
                  NaiveClusters(made, linkage, cut));
    }
  }
}

// The partition and the distances of the merges, in terms of content.
using Content = std::pair<std::vector<std::vector<PatternSymbols>>, std::vector<Fixed>>;
Content ContentOf(const std::vector<PatternSymbols>& patterns, const PatternClusters& clusters) {
  Content content;
  content.first.resize(clusters.clusters);
  for (size_t i = 0; i < patterns.size(); ++i) {
    content.first[clusters.cluster_of[i]].push_back(patterns[i]);
  }
  for (auto& cluster : content.first) std::sort(cluster.begin(), cluster.end());
  std::sort(content.first.begin(), content.first.end());
  for (const Merge& merge : clusters.merges) content.second.push_back(merge.distance);
  return content;
}

TEST(PatternClustersTest, DoNotDependOnTheOrderOfThePatterns) {
  RandomPatternOptions options;
  options.patterns = 400;
  options.symbols = 60;
  options.words = 12;
  options.longest = 15;
  options.variants = 6;
  RandomPatterns made = MakeRandomPatterns(options);
  std::mt19937 random(5);
  for (const Linkage linkage : kLinkages) {
    const ClusterOptions cluster_options{.linkage = linkage};
    const Content expected = ContentOf(
        made.patterns, ClusterPatterns(made.patterns, made.words, made.counts, cluster_options));
    EXPECT_GT(expected.first.size(), 5U);
    EXPECT_LT(expected.first.size(), 390U);
    for (int round = 0; round < 3; ++round) {
      std::shuffle(made.patterns.begin(), made.patterns.end(), random);
      EXPECT_EQ(ContentOf(made.patterns,
                          ClusterPatterns(made.patterns, made.words, made.counts, cluster_options)),
                expected);
    }
  }
}

TEST(PatternClustersTest, MergesRiseAndMakeTheClusters) {
  RandomPatternOptions options;
  options.patterns = 300;
  options.symbols = 40;
  const RandomPatterns made = MakeRandomPatterns(options);
  const PatternClusters found = ClusterPatterns(made.patterns, made.words, made.counts, {});
  std::vector<std::vector<uint32_t>> members(300 + found.merges.size());
  for (uint32_t i = 0; i < 300; ++i) members[i] = {i};
  Fixed last = 0;
  for (size_t step = 0; step < found.merges.size(); ++step) {
    const Merge& merge = found.merges[step];
    ASSERT_GE(merge.distance, last);
    ASSERT_LE(merge.distance, DefaultCut(Linkage::kAverage));
    last = merge.distance;
    for (const uint32_t part : {merge.a, merge.b}) {
      ASSERT_LT(part, 300 + step);
      ASSERT_FALSE(members[part].empty());  // joined once only
      members[300 + step].insert(members[300 + step].end(), members[part].begin(),
                                 members[part].end());
      members[part].clear();
    }
  }
  uint32_t clusters = 0;
  for (const std::vector<uint32_t>& cluster : members) {
    if (cluster.empty()) continue;
    ++clusters;
    for (const uint32_t i : cluster) {
      EXPECT_EQ(found.cluster_of[i], found.cluster_of[cluster.front()]);
    }
  }
  EXPECT_EQ(clusters, found.clusters);
}

TEST(PatternClustersTest, NumbersClustersByTheirFirstPattern) {
  SymbolWords words;
  for (int i = 0; i < 9; ++i) words.AddUnnamed();
  const NgramCounts counts;
  const std::vector<PatternSymbols> patterns = {{8, 7, 6}, {0, 1, 2}, {8, 7, 5}, {0, 1, 3}, {4}};
  const PatternClusters found = ClusterPatterns(patterns, words, counts, {});
  EXPECT_EQ(found.cluster_of, (std::vector<uint32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(found.clusters, 3U);
}

TEST(PatternClustersTest, NoPatternsAreNoClusters) {
  const PatternClusters found = ClusterPatterns({}, SymbolWords(), NgramCounts(), {});
  EXPECT_EQ(found.clusters, 0U);
  EXPECT_TRUE(found.merges.empty());
}

TEST(PatternClustersTest, EachLinkageHasItsOwnCut) {
  EXPECT_EQ(DefaultCut(Linkage::kAverage), 576716U);   // 0.55
  EXPECT_EQ(DefaultCut(Linkage::kComplete), 681574U);  // 0.65
  EXPECT_EQ(DefaultCut(Linkage::kSingle), 314572U);    // 0.30
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
