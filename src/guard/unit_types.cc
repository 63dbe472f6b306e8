// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_types.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "cluster/linkage.h"
#include "guard/path_sets.h"

namespace culprit::guard {
namespace {

// Shapes of one loop and kind, by their path sets; sets by falling number of units.
struct ShapeGroup {
  struct Set {
    std::vector<uint32_t> paths;
    std::vector<uint32_t> shapes;
    uint64_t units = 0;
  };
  std::vector<Set> sets;
};

ShapeGroup GroupOf(const Profile& profile, const std::vector<uint32_t>& shapes) {
  std::map<std::vector<uint32_t>, uint32_t> numbers;
  ShapeGroup group;
  for (const uint32_t shape : shapes) {
    std::vector<uint32_t> paths = PathSet(profile, profile.shapes[shape]);
    const auto [found, made] =
        numbers.try_emplace(std::move(paths), static_cast<uint32_t>(group.sets.size()));
    if (made) group.sets.push_back({.paths = found->first});
    group.sets[found->second].shapes.push_back(shape);
    group.sets[found->second].units += profile.shapes[shape].total_units();
  }
  std::sort(group.sets.begin(), group.sets.end(), [](const auto& x, const auto& y) {
    return std::tie(y.units, x.paths) < std::tie(x.units, y.paths);
  });
  return group;
}

// The cluster of each set, named by its lowest member.
std::vector<uint32_t> Cluster(const Profile& profile, const ShapeGroup& group,
                              const UnitTypeOptions& options) {
  PathSets sets(profile.paths, options.distance);
  for (const auto& set : group.sets) sets.Add(set.paths);
  sets.Finish();
  const uint64_t cut = std::min<uint64_t>(options.cut_ppm, 1'000'000);
  const auto least = static_cast<cluster::Fixed>(
      std::max<uint64_t>(cluster::kOne - cut * cluster::kOne / 1'000'000, 1));
  const auto joined =
      cluster::Agglomerate(sets.size(), sets.SimilarPairs(least), {.least = least, .jobs = 0},
                           [&] { return sets.MakeSource(); });
  std::vector<uint32_t> cluster_of(sets.size());
  std::iota(cluster_of.begin(), cluster_of.end(), 0U);
  for (const cluster::Joined& join : joined) cluster_of[join.b] = join.a;
  for (uint32_t& cluster : cluster_of) {
    while (cluster_of[cluster] != cluster) cluster = cluster_of[cluster];
  }
  return cluster_of;
}

}  // namespace

std::vector<uint32_t> PathSet(const Profile& profile, const UnitShape& shape) {
  std::vector<uint32_t> paths;
  paths.reserve(shape.places.size());
  for (const uint32_t place : shape.places) paths.push_back(profile.places[place].path);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void FindUnitTypes(const UnitTypeOptions& options, Profile& profile) {
  profile.types.clear();
  std::map<std::pair<uint32_t, wire::UnitKind>, std::vector<uint32_t>> groups;
  for (uint32_t i = 0; i < profile.shapes.size(); ++i) {
    groups[{profile.shapes[i].loop, profile.shapes[i].kind}].push_back(i);
  }
  for (const auto& [key, shapes] : groups) {
    const ShapeGroup group = GroupOf(profile, shapes);
    const std::vector<uint32_t> cluster_of = Cluster(profile, group, options);
    std::map<uint32_t, uint32_t> type_of;
    for (size_t i = 0; i < group.sets.size(); ++i) {
      const auto [type, made] =
          type_of.try_emplace(cluster_of[i], static_cast<uint32_t>(profile.types.size()));
      if (made) profile.types.push_back({.kind = key.second, .loop = key.first});
      UnitType& row = profile.types[type->second];
      row.units += group.sets[i].units;
      row.shapes += static_cast<uint32_t>(group.sets[i].shapes.size());
      for (const uint32_t shape : group.sets[i].shapes) profile.shapes[shape].type = type->second;
    }
  }
  std::vector<uint32_t> order(profile.types.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    return profile.types[x].units > profile.types[y].units;
  });
  std::vector<uint32_t> rank(order.size());
  std::vector<UnitType> sorted;
  for (uint32_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = i;
    sorted.push_back(std::move(profile.types[order[i]]));
  }
  profile.types = std::move(sorted);
  for (UnitShape& shape : profile.shapes) shape.type = rank[shape.type];
}

}  // namespace culprit::guard
