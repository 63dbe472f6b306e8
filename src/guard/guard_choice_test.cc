// SPDX-License-Identifier: Apache-2.0
#include "guard/guard_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "guard/context_bits.h"
#include "guard/flat_profile.h"
#include "guard/naive_contexts.h"
#include "guard/random_profile.h"
#include "guard/type_entropy.h"
#include "guard/unit_types.h"

namespace culprit::guard::TEST_FILE {
namespace {

TEST(TypeEntropy, LogarithmsAreExactToTheLastBits) {
  for (uint64_t value = 1; value < 2000; ++value) {
    const double exact = std::log2(static_cast<double>(value));
    EXPECT_NEAR(static_cast<double>(LogTwo(value)) / 4294967296.0, exact, 1e-8);
  }
  EXPECT_EQ(LogTwo(uint64_t{1} << 40), uint64_t{40} << 32);
}

// Bits that are open about the type when a partition is known, by the definition.
double NaiveOpen(const std::vector<TypeEntropy::Weighted>& shapes,
                 const std::vector<std::vector<uint32_t>>& observed) {
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::map<uint32_t, double>> blocks;
  for (size_t i = 0; i < shapes.size(); ++i) {
    blocks[{shapes[i].block, observed[i]}][shapes[i].type] += static_cast<double>(shapes[i].units);
  }
  double open = 0;
  for (const auto& [key, types] : blocks) {
    double all = 0;
    for (const auto& [type, units] : types) all += units;
    for (const auto& [type, units] : types) {
      if (units > 0) open -= units * std::log2(units / all);
    }
  }
  return open;
}

TEST(TypeEntropy, GainsAreThoseOfTheDefinition) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<TypeEntropy::Weighted> shapes;
    for (uint64_t i = 1 + random() % 20; i > 0; --i) {
      shapes.push_back({static_cast<uint32_t>(random() % 4), static_cast<uint32_t>(random() % 2),
                        random() % 50});
    }
    TypeEntropy entropy(shapes);
    std::vector<std::vector<uint32_t>> observed(shapes.size());
    for (int step = 0; step < 4; ++step) {
      std::vector<Observation> seen;
      std::vector<std::vector<uint32_t>> after = observed;
      for (uint32_t i = 0; i < shapes.size(); ++i) {
        const auto outcome = static_cast<uint32_t>(random() % 3);
        after[i].push_back(outcome);
        if (outcome > 0) seen.push_back({i, outcome});
      }
      const double before = NaiveOpen(shapes, observed);
      EXPECT_NEAR(static_cast<double>(entropy.open()) / 4294967296.0, before, 1e-4);
      EXPECT_NEAR(static_cast<double>(entropy.Gain(seen)) / 4294967296.0,
                  before - NaiveOpen(shapes, after), 1e-4);
      entropy.Split(seen);
      observed = after;
    }
    EXPECT_NEAR(static_cast<double>(entropy.open()) / 4294967296.0, NaiveOpen(shapes, observed),
                1e-4);
  }
}

// The gain of the first guard by the definition, over all functions; unless it
// turned out to mislead and was dropped, which is rare.
TEST(ChooseGuards, TheFirstGuardGainsMostPerHit) {
  uint64_t judged = 0;
  uint64_t best = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Profile profile = RandomProfile(seed, {.shapes = 16});
    FindUnitTypes({.cut_ppm = 300'000}, profile);
    ChooseGuards({}, profile);
    if (profile.types.size() < 2) continue;
    ASSERT_FALSE(profile.guards.empty());
    std::vector<TypeEntropy::Weighted> shapes;
    std::vector<std::vector<uint32_t>> nothing(profile.shapes.size());
    for (const UnitShape& shape : profile.shapes) {
      shapes.push_back({shape.type, 0, shape.total_units()});
    }
    const double open = NaiveOpen(shapes, nothing);
    std::map<uint32_t, double> worth;
    for (uint32_t function = 0; function < profile.functions.size(); ++function) {
      std::vector<std::vector<uint32_t>> observed(profile.shapes.size());
      double hits = 0;
      for (size_t i = 0; i < profile.shapes.size(); ++i) {
        const UnitShape& shape = profile.shapes[i];
        for (const CalledContext& called : NaiveContexts(profile, shape)) {
          if (called.function == function) {
            observed[i].push_back(static_cast<uint32_t>(called.context.depth));
            observed[i].push_back(called.context.caller);
          }
        }
        for (size_t k = 0; k < shape.places.size(); ++k) {
          const Place& place = profile.places[shape.places[k]];
          if (profile.paths[place.path].function == function) {
            hits += static_cast<double>(shape.hits[k]);
          }
        }
      }
      const auto fixed = static_cast<double>(profile.training.units / 100 + 1);
      worth[function] = (open - NaiveOpen(shapes, observed)) / (hits + fixed);
    }
    ++judged;
    best += std::all_of(worth.begin(), worth.end(), [&](const auto& one) {
      return worth[profile.guards[0].function] + 1e-6 >= one.second;
    });
  }
  EXPECT_GT(judged, 30U);
  EXPECT_GE(best * 10, judged * 9);
}

TEST(ChooseGuards, TellAllTypesThatContextsCanTell) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Profile profile = RandomProfile(seed, {.shapes = 20, .loops = 2});
    FindUnitTypes({.cut_ppm = 100'000}, profile);
    ChooseGuards({}, profile);
    // With the chosen contexts no two units of different types look alike, unless
    // they do with all contexts.
    const ContextBits bits(profile, profile.guards);
    std::map<std::pair<uint32_t, ContextSet>, std::map<std::vector<CalledContext>, uint32_t>> seen;
    for (const UnitShape& shape : profile.shapes) {
      seen[{shape.loop, bits.OfShape(shape)}][NaiveContexts(profile, shape)] = shape.type;
    }
    for (const auto& [key, shapes] : seen) {
      std::set<uint32_t> types;
      for (const auto& [contexts, type] : shapes) types.insert(type);
      EXPECT_EQ(types.size(), 1U) << seed;
    }
    EXPECT_EQ(profile.quality.units, profile.training.units);
    EXPECT_LE(profile.quality.right, profile.quality.units);
    EXPECT_EQ(FirstContradiction(profile), "");
  }
}

// Each of a chain of calls parts two types as well as any other; the innermost has the
// smallest number.
TEST(ChooseGuards, PartTypesByTheOuterCallsFirst) {
  constexpr uint32_t kCalls = 30;
  Profile profile = FlatProfile(kCalls);
  profile.paths.clear();
  for (uint32_t i = 0; i < kCalls; ++i) {
    profile.paths.push_back({i == 0 ? kNoIndex : i - 1, kCalls - 1 - i});
    profile.places[i].path = i;
  }
  std::vector<uint32_t> all(kCalls);
  std::iota(all.begin(), all.end(), 0U);
  AddShape(profile, 0, all, 100);
  AddShape(profile, 1, {}, 100);
  profile.types = {{.units = 100}, {.units = 100}};
  ChooseGuards({}, profile);
  ASSERT_GE(profile.guards.size(), 3U);
  EXPECT_EQ(profile.guards[0].function, 0U) << "tells all there is to tell";
  EXPECT_EQ(profile.guards[1].function, kCalls - 1);
  EXPECT_EQ(profile.guards[2].function, kCalls - 2);
}

TEST(ChooseGuards, KeepTheLimits) {
  Profile profile = RandomProfile(3, {.functions = 40, .paths = 200, .shapes = 100});
  FindUnitTypes({}, profile);
  ChooseGuards({.max_guards = 3}, profile);
  EXPECT_LE(profile.guards.size(), 3U);
  ChooseGuards({.max_context_bits = 5}, profile);
  size_t bits = 0;
  for (const Guard& guard : profile.guards) bits += guard.contexts.size();
  EXPECT_LE(bits, 5U);
  ChooseGuards({.max_hits_per_mega_unit = 100'000}, profile);
  uint64_t hits = 0;
  for (const Guard& guard : profile.guards) hits += guard.hits_per_mega_unit;
  EXPECT_LE(hits, 100'000U);
}

// 002, figure 4: types X, Y and Z over the functions A to H; Z calls A-B-E-D-H. As
// the unit runs on, the candidates become fewer, and H leaves Z alone.
TEST(ChooseGuards, Figure4) {
  Profile profile;
  profile.modules = {{"ab01", "/bin/program"}};
  for (uint32_t i = 0; i < 8; ++i) {
    profile.functions.push_back(
        {0, 0x1000 + i * 0x100ULL, std::string(1, static_cast<char>('A' + i))});
    profile.paths.push_back({kNoIndex, i});
    profile.places.push_back({i, 64});
  }
  profile.loops.resize(1);
  const std::string calls[] = {"ABCDF", "ABCDG", "ABDEH"};  // of X, Y, Z
  for (uint32_t type = 0; type < 3; ++type) {
    UnitShape shape{.type = type};
    for (const char c : calls[type]) shape.places.push_back(static_cast<uint32_t>(c - 'A'));
    shape.hits.assign(shape.places.size(), 10);
    shape.units[0] = shape.units[1] = 5;
    profile.shapes.push_back(shape);
    profile.types.push_back({.name = std::string(1, static_cast<char>('X' + type)), .units = 10});
  }
  // A tie goes to the smallest threshold.
  profile.types[0].threshold_ns = 30;
  profile.types[1].threshold_ns = 10;
  profile.types[2].threshold_ns = 20;
  std::vector<Guard> guards;
  for (uint32_t i = 0; i < 8; ++i) guards.push_back({.function = i, .contexts = {{64}}});
  const ContextBits bits(profile, guards);
  const std::vector<ContextSet> types = bits.OfTypes();
  const auto inferred = [&](const std::string& entered) {
    UnitShape shape;
    for (const char c : entered) shape.places.push_back(static_cast<uint32_t>(c - 'A'));
    return FindMostAlike(profile, types, shape, bits.OfShape(shape));
  };
  EXPECT_EQ(inferred("A"), 1U);  // X, Y, Z alike: the smallest threshold
  EXPECT_EQ(inferred("AB"), 1U);
  EXPECT_EQ(inferred("ABE"), 2U);  // only Z has E
  EXPECT_EQ(inferred("ABDEH"), 2U);
  EXPECT_EQ(inferred("ABCD"), 1U);  // X and Y
  EXPECT_EQ(inferred("ABCDF"), 0U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
