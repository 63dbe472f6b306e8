// SPDX-License-Identifier: Apache-2.0
#include "episode/anomalies.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "episode/appearance_clusters.h"
#include "episode/nearest_neighbours.h"
#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

TEST(NearestNeighbours, EqualThoseOfComparingAllPairs) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 60; ++round) {
    PointTable points = {.dimensions = 1 + random() % 5, .coordinates = {}};
    const size_t count = 1 + random() % 200;
    const uint64_t range = round % 3 == 0 ? 4 : round % 3 == 1 ? 1000 : UINT32_MAX;
    for (size_t i = 0; i < count * points.dimensions; ++i) {
      points.coordinates.push_back(static_cast<uint32_t>(random() % range));
    }
    const std::vector<uint64_t> found = NearestNeighbours(points, 1 + round % 2);
    for (size_t i = 0; i < count; ++i) {
      uint64_t best = UINT64_MAX;
      for (size_t j = 0; j < count; ++j) {
        uint64_t sum = 0;
        for (size_t d = 0; d < points.dimensions; ++d) {
          const uint64_t a =
              std::min(points.coordinates[i * points.dimensions + d], kLargestCoordinate);
          const uint64_t b =
              std::min(points.coordinates[j * points.dimensions + d], kLargestCoordinate);
          sum += (a > b ? a - b : b - a) * (a > b ? a - b : b - a);
        }
        if (i != j) best = std::min(best, sum);
      }
      ASSERT_EQ(found[i], best) << "round " << round << " point " << i;
    }
  }
}

TEST(ClusterSets, KeepTogetherWhatSharesHalf) {
  const std::vector<SymbolSet> sets = {{{1, 2, 3}, 9}, {{1, 2}, 5},       {{7, 8}, 5},
                                       {{7, 8, 9}, 2}, {{1, 2, 3, 4}, 1}, {{20}, 1}};
  EXPECT_EQ(ClusterSets(sets), (std::vector<uint32_t>{0, 0, 1, 1, 0, 2}));
  EXPECT_TRUE(ClusterSets({}).empty());
}

// Of the textbook: the first to leave is the one farthest from the others on
// average, and those nearer to it follow.
TEST(ClusterSets, EveryClusterIsNarrowAndEverySetIsInOne) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::map<std::vector<Symbol>, uint64_t> distinct;
    for (int i = 0; i < 40; ++i) {
      std::vector<Symbol> set;
      for (Symbol symbol = 0; symbol < 8; ++symbol) {
        if (random() % 3 == 0) set.push_back(symbol);
      }
      ++distinct[set];
    }
    std::vector<SymbolSet> sets;
    for (const auto& [set, weight] : distinct) sets.push_back({set, weight});
    const std::vector<uint32_t> cluster = ClusterSets(sets);
    ASSERT_EQ(cluster.size(), sets.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (cluster[i] == cluster[j]) {
          EXPECT_LE(JaccardDistance(sets[i].symbols, sets[j].symbols), 65536u / 2);
        }
      }
    }
  }
}

TEST(ClusterSets, MoreThanFitJoinTheNearest) {
  std::vector<SymbolSet> sets;
  for (size_t i = 0; i < kMaxSets + 50; ++i) {
    const auto low = static_cast<Symbol>(i % 64);
    const auto high = static_cast<Symbol>(100 + i / 64);
    sets.push_back({{low, high}, 2});
  }
  sets.push_back({{1, 100, 101}, 1});
  const std::vector<uint32_t> cluster = ClusterSets(sets);
  EXPECT_EQ(cluster.size(), sets.size());
}

struct Found {
  SyscallLog log;
  Units units;
  Anomalies anomalies;
};

Found Find(const SyscallTrace& made, size_t jobs) {
  SymbolTable symbols;
  Found found = {made.Log(symbols), {}, {}};
  found.units = SplitUnits(found.log);
  found.anomalies = FindAnomalies(found.log, found.units, jobs);
  return found;
}

// Twenty units of read and write, one with a hundred reads, one with a slow
// write, one that does something else.
SyscallTrace Work() {
  SyscallTrace made;
  int64_t at = 0;
  for (int64_t unit = 0; unit < 23; ++unit) {
    if (unit == 20) {
      made.Call("t", "getrandom", at += 2'000, 1'000);
    } else {
      const int64_t reads = unit == 7 ? 100 : 3 + unit % 2;
      for (int64_t i = 0; i < reads; ++i) made.Call("t", "read", at += 2'000, 1'000);
      made.Call("t", "write", at += 2'000, unit == 12 ? 500'000 : 1'000);
      if (unit == 12) at += 500'000;
    }
    at += 3'000'000;
  }
  return made;
}

TEST(Anomalies, AreTheUnitsUnlikeTheOthers) {
  const Found found = Find(Work(), 1);
  ASSERT_EQ(found.units.units.size(), 23u);
  for (size_t i = 0; i < 23; ++i) {
    const uint8_t expected = i == 7    ? kUnusualCounts
                             : i == 12 ? kUnusualTimes
                             : i == 20 ? kSmallCluster
                                       : 0;
    EXPECT_EQ(found.anomalies.flags[i], expected) << i;
  }
  EXPECT_EQ(found.anomalies.clusters, 2u);
  EXPECT_EQ(found.anomalies.abnormal, 3u);
}

TEST(Anomalies, AreTheSameForAnyNumberOfThreads) {
  EXPECT_EQ(Find(Work(), 1).anomalies.flags, Find(Work(), 2).anomalies.flags);
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
