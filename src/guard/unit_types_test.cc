// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster/naive_clustering.h"
#include "guard/path_distance.h"
#include "guard/path_sets.h"
#include "guard/random_profile.h"

namespace culprit::guard::TEST_FILE {
namespace {

cluster::Fixed NaiveJaccard(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  std::set<uint32_t> united = a;
  united.insert(b.begin(), b.end());
  const uint64_t shared = a.size() + b.size() - united.size();
  if (united.empty()) return cluster::kOne;
  return static_cast<cluster::Fixed>(shared * cluster::kOne / united.size());
}

// Equation 2 of 002 over root-to-leaf paths, with D(X, X) = 0.
cluster::Fixed NaiveAlgorithm1(const Profile& profile, const std::set<uint32_t>& a,
                               const std::set<uint32_t>& b) {
  const auto leaves = [&](const std::set<uint32_t>& set) {
    std::set<uint32_t> inner;
    for (const uint32_t path : set) inner.insert(profile.paths[path].parent);
    std::vector<FunctionPath> result;
    for (const uint32_t path : set) {
      if (inner.contains(path)) continue;
      FunctionPath functions;
      for (uint32_t at = path; at != kNoIndex; at = profile.paths[at].parent) {
        functions.insert(functions.begin(), profile.paths[at].function);
      }
      result.push_back(functions);
    }
    return result;
  };
  const auto of_a = leaves(a);
  const auto of_b = leaves(b);
  if (of_a == of_b) return cluster::kOne;
  if (of_a.empty() || of_b.empty()) return 0;
  uint64_t sum = 0;
  for (const FunctionPath& x : of_a) {
    for (const FunctionPath& y : of_b) sum += PathSimilarity(x, y);
  }
  return static_cast<cluster::Fixed>(sum / (of_a.size() * of_b.size()));
}

// Partitions of shapes by type, each by its lowest member.
std::vector<uint32_t> Partition(const std::vector<uint32_t>& type_of) {
  std::map<uint32_t, uint32_t> first;
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < type_of.size(); ++i) {
    result.push_back(first.try_emplace(type_of[i], i).first->second);
  }
  return result;
}

// The same by the plainest means: all pairs, all joins searched anew.
std::vector<uint32_t> NaiveTypes(const Profile& profile, const UnitTypeOptions& options) {
  std::vector<uint32_t> type_of(profile.shapes.size());
  uint32_t next = 0;
  for (uint32_t loop = 0; loop < profile.loops.size(); ++loop) {
    std::map<std::set<uint32_t>, uint64_t> units;
    std::vector<std::set<uint32_t>> of_shape(profile.shapes.size());
    for (size_t i = 0; i < profile.shapes.size(); ++i) {
      const UnitShape& shape = profile.shapes[i];
      for (const uint32_t place : shape.places) of_shape[i].insert(profile.places[place].path);
      if (shape.loop == loop) units[of_shape[i]] += shape.total_units();
    }
    std::vector<std::pair<uint64_t, std::set<uint32_t>>> sets;
    for (const auto& [set, count] : units) sets.emplace_back(count, set);
    std::stable_sort(sets.begin(), sets.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
    cluster::SimilarityMatrix matrix(sets.size(), std::vector<cluster::Fixed>(sets.size()));
    for (size_t i = 0; i < sets.size(); ++i) {
      for (size_t j = 0; j < sets.size(); ++j) {
        matrix[i][j] = options.distance == UnitDistance::kJaccard
                           ? NaiveJaccard(sets[i].second, sets[j].second)
                           : NaiveAlgorithm1(profile, sets[i].second, sets[j].second);
      }
    }
    const auto least = static_cast<cluster::Fixed>(cluster::kOne - uint64_t{options.cut_ppm} *
                                                                       cluster::kOne / 1'000'000);
    std::vector<uint32_t> cluster_of(sets.size());
    for (uint32_t i = 0; i < sets.size(); ++i) cluster_of[i] = i;
    for (const auto& join : cluster::NaiveAgglomerate(matrix, cluster::Linkage::kAverage, least)) {
      for (uint32_t& cluster : cluster_of) {
        if (cluster == join.b) cluster = join.a;
      }
    }
    for (size_t i = 0; i < profile.shapes.size(); ++i) {
      if (profile.shapes[i].loop != loop) continue;
      for (uint32_t k = 0; k < sets.size(); ++k) {
        if (sets[k].second == of_shape[i]) type_of[i] = next + cluster_of[k];
      }
    }
    next += static_cast<uint32_t>(sets.size());
  }
  return Partition(type_of);
}

TEST(UnitTypes, AreThoseOfNaiveLinkage) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (const auto distance : {UnitDistance::kJaccard, UnitDistance::kAlgorithm1}) {
      for (const uint32_t cut_ppm : {50'000U, 100'000U, 300'000U, 700'000U}) {
        Profile profile = RandomProfile(seed, {.shapes = 18, .loops = seed % 2 == 0 ? 1U : 2U});
        const UnitTypeOptions options{distance, cut_ppm};
        FindUnitTypes(options, profile);
        std::vector<uint32_t> types;
        for (const UnitShape& shape : profile.shapes) types.push_back(shape.type);
        ASSERT_EQ(Partition(types), NaiveTypes(profile, options)) << seed << " " << cut_ppm;
        ASSERT_EQ(FirstContradiction(profile), "");
      }
    }
  }
}

TEST(UnitTypes, CountTheirUnitsAndComeByFallingNumber) {
  Profile profile = RandomProfile(5, {.shapes = 30, .loops = 2});
  FindUnitTypes({}, profile);
  std::vector<uint64_t> units(profile.types.size());
  for (const UnitShape& shape : profile.shapes) units[shape.type] += shape.total_units();
  uint64_t sum = 0;
  for (size_t i = 0; i < profile.types.size(); ++i) {
    EXPECT_EQ(profile.types[i].units, units[i]);
    if (i > 0) {
      EXPECT_LE(units[i], units[i - 1]);
    }
    sum += units[i];
  }
  EXPECT_EQ(sum, profile.training.units);
}

// As printed, Algorithm 1 puts a unit of two unlike paths at distance 1/2 from
// itself; here D(X, X) = 0.
TEST(UnitTypes, Algorithm1IsZeroOfAUnitAndItself) {
  const std::vector<CallPath> paths = {{kNoIndex, 1}, {kNoIndex, 2}, {kNoIndex, 3}};
  PathSets sets(paths, UnitDistance::kAlgorithm1);
  sets.Add({0, 1});
  sets.Add({0, 1, 2});
  sets.Finish();
  EXPECT_EQ(sets.Similarity(0, 0), cluster::kOne);
  EXPECT_EQ(sets.Similarity(0, 1), cluster::kOne / 3);  // 2 of 6 pairs are equal
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
