// SPDX-License-Identifier: Apache-2.0
#include "episode/anomalies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/parallel.h"
#include "episode/appearance_clusters.h"
#include "episode/nearest_neighbours.h"
#include "episode/spread.h"

namespace culprit::episode {
namespace {

constexpr size_t kSmallest = 4;
// Durations are told apart in steps of 10 us: what is below is noise, and most
// units then fall on few points.
constexpr uint64_t kStepNs = 10'000;

struct Feature {
  Symbol symbol;
  uint32_t count;
  uint32_t mean_steps;
};

std::vector<Feature> FeaturesOf(const SyscallLog& log, const Unit& unit) {
  std::map<Symbol, std::pair<uint64_t, int64_t>> sums;
  const std::vector<Syscall>& calls = log.threads[unit.thread].calls;
  for (size_t i = unit.first; i < size_t{unit.first} + unit.count; ++i) {
    auto& [count, dur_ns] = sums[calls[i].symbol];
    ++count;
    dur_ns += calls[i].dur_ns;
  }
  std::vector<Feature> features;
  for (const auto& [symbol, sum] : sums) {
    const auto mean_steps = static_cast<uint64_t>(sum.second) / sum.first / kStepNs;
    features.push_back({symbol, static_cast<uint32_t>(std::min<uint64_t>(sum.first, UINT32_MAX)),
                        static_cast<uint32_t>(std::min<uint64_t>(mean_steps, kLargestCoordinate))});
  }
  return features;
}

// The units of one cluster as points: a dimension a symbol.
PointTable Table(const std::vector<std::vector<Feature>>& features,
                 const std::vector<uint32_t>& members, uint32_t Feature::*value) {
  std::map<Symbol, size_t> dimension;
  for (const uint32_t unit : members) {
    for (const Feature& feature : features[unit]) dimension.emplace(feature.symbol, 0);
  }
  PointTable table;
  for (auto& [symbol, index] : dimension) index = table.dimensions++;
  table.coordinates.resize(table.dimensions * members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    for (const Feature& feature : features[members[i]]) {
      table.coordinates[i * table.dimensions + dimension.at(feature.symbol)] = feature.*value;
    }
  }
  return table;
}

// Equal points are zero apart: only distinct ones are searched.
std::vector<uint64_t> Distances(const PointTable& table, size_t jobs) {
  std::map<std::vector<uint32_t>, std::vector<uint32_t>> distinct;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto row = table.coordinates.begin() + static_cast<ptrdiff_t>(i * table.dimensions);
    distinct[{row, row + static_cast<ptrdiff_t>(table.dimensions)}].push_back(
        static_cast<uint32_t>(i));
  }
  PointTable points = {.dimensions = table.dimensions, .coordinates = {}};
  for (const auto& [row, members] : distinct) {
    points.coordinates.insert(points.coordinates.end(), row.begin(), row.end());
  }
  const std::vector<uint64_t> nearest = NearestNeighbours(points, jobs);
  std::vector<uint64_t> distances(table.size());
  size_t at = 0;
  for (const auto& [row, members] : distinct) {
    const uint64_t squared = members.size() > 1 ? 0 : nearest[at];
    for (const uint32_t member : members) distances[member] = squared;
    ++at;
  }
  return distances;
}

// In sixteenths, so that distances of a call or two are told apart.
uint64_t Root(uint64_t squared) {
  if (squared == UINT64_MAX) return 0;
  auto root = static_cast<uint64_t>(16 * std::sqrt(static_cast<double>(squared)));
  return root;
}

void MarkOutliers(const std::vector<std::vector<Feature>>& features,
                  const std::vector<uint32_t>& members, uint32_t Feature::*value, uint8_t flag,
                  size_t jobs, std::vector<uint8_t>& flags) {
  const std::vector<uint64_t> distances = Distances(Table(features, members, value), jobs);
  Spread spread;
  for (const uint64_t squared : distances) spread.Add(Root(squared));
  for (size_t i = 0; i < members.size(); ++i) {
    if (spread.IsOutlier(Root(distances[i]))) flags[members[i]] |= flag;
  }
}

std::vector<uint32_t> ClusterUnits(const std::vector<std::vector<Feature>>& features) {
  std::vector<SymbolSet> sets;
  std::map<std::vector<Symbol>, uint32_t> known;
  std::vector<uint32_t> set_of(features.size());
  for (size_t i = 0; i < features.size(); ++i) {
    std::vector<Symbol> symbols;
    for (const Feature& feature : features[i]) symbols.push_back(feature.symbol);
    const auto [it, is_new] = known.try_emplace(symbols, static_cast<uint32_t>(sets.size()));
    if (is_new) sets.push_back({.symbols = symbols, .weight = 0});
    set_of[i] = it->second;
    ++sets[it->second].weight;
  }
  const std::vector<uint32_t> cluster_of_set = ClusterSets(sets);
  for (uint32_t& of : set_of) of = cluster_of_set[of];
  return set_of;
}

}  // namespace

Anomalies FindAnomalies(const SyscallLog& log, const Units& units, size_t jobs) {
  Anomalies result;
  const size_t count = units.units.size();
  std::vector<std::vector<Feature>> features(count);
  constexpr size_t kChunk = 256;
  ParallelFor((count + kChunk - 1) / kChunk, jobs, [&](size_t chunk) {
    for (size_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
      features[i] = FeaturesOf(log, units.units[i]);
    }
  });
  result.cluster = ClusterUnits(features);
  for (const uint32_t cluster : result.cluster) {
    result.clusters = std::max(result.clusters, cluster + 1);
  }
  std::vector<std::vector<uint32_t>> members(result.clusters);
  for (size_t i = 0; i < count; ++i) {
    members[result.cluster[i]].push_back(static_cast<uint32_t>(i));
  }
  result.flags.resize(count);
  for (const std::vector<uint32_t>& cluster : members) {
    if (cluster.size() < kSmallest) {
      for (const uint32_t unit : cluster) result.flags[unit] |= kSmallCluster;
      continue;
    }
    MarkOutliers(features, cluster, &Feature::mean_steps, kUnusualTimes, jobs, result.flags);
    MarkOutliers(features, cluster, &Feature::count, kUnusualCounts, jobs, result.flags);
  }
  for (const uint8_t flags : result.flags) {
    result.abnormal += flags != 0 ? 1 : 0;
    result.by_small_cluster += (flags & kSmallCluster) != 0 ? 1 : 0;
    result.by_times += (flags & kUnusualTimes) != 0 ? 1 : 0;
    result.by_counts += (flags & kUnusualCounts) != 0 ? 1 : 0;
  }
  return result;
}

}  // namespace culprit::episode
