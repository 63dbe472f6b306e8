// SPDX-License-Identifier: Apache-2.0
#include "guard/steady_contexts.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "guard/context_bits.h"
#include "guard/flat_profile.h"
#include "guard/guard_choice.h"
#include "guard/random_profile.h"
#include "guard/unit_types.h"

namespace culprit::guard::TEST_FILE {
namespace {

// Functions 0 and 1 belong to types 0 and 1; 2 is entered by half of type 0.
Profile SteadyAndUnsteady() {
  Profile profile = FlatProfile(3);
  AddShape(profile, 0, {0}, 100);
  AddShape(profile, 0, {0, 2}, 100);
  AddShape(profile, 1, {1}, 100);
  profile.types = {{.units = 200}, {.units = 100}};
  return profile;
}

TEST(SteadyContexts, WhatSomeUnitsOfATypeEnterIsNotSteady) {
  const Profile profile = SteadyAndUnsteady();
  const ContextNumbers numbers(profile);
  SteadyContexts steady(profile, numbers, kBothHalves);
  EXPECT_TRUE(steady.IsSteady(numbers.OfPlace(0)));
  EXPECT_TRUE(steady.IsSteady(numbers.OfPlace(1)));
  EXPECT_FALSE(steady.IsSteady(numbers.OfPlace(2)));
  const std::vector<uint32_t> first = {numbers.OfPlace(0)};
  EXPECT_GT(steady.StillWanted(first), 0U);
  for (uint32_t i = 0; i < SteadyContexts::kWanted; ++i) steady.Add(first);
  EXPECT_EQ(steady.StillWanted(first), 0U);
  EXPECT_GT(steady.StillWanted({numbers.OfPlace(1)}), 0U);
}

TEST(SteadyContexts, TypesAreCloseUntilThreeFunctionsPartThem) {
  const Profile profile = SteadyAndUnsteady();
  const ContextNumbers numbers(profile);
  SteadyContexts steady(profile, numbers, kBothHalves);
  const std::vector<uint32_t> first = {numbers.OfPlace(0)};
  // Both contexts part the same two types: as contexts of one function they are worth one.
  EXPECT_EQ(steady.StillClose({numbers.OfPlace(0), numbers.OfPlace(1)}), steady.StillClose(first));
  // Not always entered by one type, never by the other.
  EXPECT_EQ(steady.StillClose({numbers.OfPlace(2)}), 0U);
  uint64_t close = steady.StillClose(first);
  for (uint32_t i = 0; i < SteadyContexts::kParting; ++i) {
    EXPECT_GT(close, 0U);
    steady.Add(first);
    EXPECT_LT(steady.StillClose(first), close);
    close = steady.StillClose(first);
  }
  EXPECT_EQ(close, 0U);
}

// Types 0 and 1 have eight functions in common, by which type 2 is told from them, and type 0
// has three of its own: one tells it from type 1, but all three are guarded.
TEST(SteadyContexts, OneFunctionIsNotEnoughToPartTypes) {
  constexpr uint32_t kCommon = 8;
  constexpr uint32_t kOwn = 3;
  Profile profile = FlatProfile(kCommon + kOwn);
  std::vector<uint32_t> all(kCommon + kOwn);
  std::iota(all.begin(), all.end(), 0);
  AddShape(profile, 0, all, 100);
  AddShape(profile, 1, {all.begin(), all.begin() + kCommon}, 100);
  AddShape(profile, 2, {}, 100);
  profile.types = {{.units = 100}, {.units = 100}, {.units = 100}};
  ChooseGuards({}, profile);
  uint32_t own = 0;
  for (const Guard& guard : profile.guards) own += guard.function >= kCommon ? 1 : 0;
  EXPECT_EQ(own, kOwn);
}

std::vector<uint32_t> Functions(uint32_t first, uint32_t count) {
  std::vector<uint32_t> functions(count);
  std::iota(functions.begin(), functions.end(), first);
  return functions;
}

uint32_t ContextsOf(const ContextSet& set) {
  uint32_t contexts = 0;
  for (const uint64_t word : set) contexts += static_cast<uint32_t>(std::popcount(word));
  return contexts;
}

constexpr uint32_t kSmall = 10;
constexpr uint32_t kTypical = 40;
constexpr uint32_t kLarge = 200;

// Type 0 enters few functions, type 1 as many as most units, type 2 many.
Profile OfThreeSizes() {
  Profile profile = FlatProfile(kSmall + kTypical + kLarge);
  AddShape(profile, 0, Functions(0, kSmall), 100);
  AddShape(profile, 1, Functions(kSmall, kTypical), 1000);
  AddShape(profile, 2, Functions(kSmall + kTypical, kLarge), 100);
  profile.types = {{.units = 100}, {.units = 1000}, {.units = 100}};
  return profile;
}

TEST(SteadyContexts, TypesThatDoMoreAreToBeKnownByMore) {
  const Profile profile = OfThreeSizes();
  const ContextNumbers numbers(profile);
  const auto wanted = [&](uint32_t function) {
    SteadyContexts steady(profile, numbers, kBothHalves);
    const std::vector<uint32_t> context = {numbers.OfPlace(function)};
    uint32_t count = 0;
    for (; steady.StillWanted(context) > 0; ++count) steady.Add(context);
    return count;
  };
  EXPECT_EQ(wanted(0), SteadyContexts::kFewestWanted);
  EXPECT_EQ(wanted(kSmall), SteadyContexts::kWanted);
  EXPECT_EQ(wanted(kSmall + kTypical), SteadyContexts::kMostWanted);
}

// It enters all that units of two types enter, each of which training saw alone: a query that
// is its own transaction, beside those that begin and commit one.
TEST(SteadyContexts, WhatDoesTwoThingsIsLikeTheGreater) {
  Profile profile = OfThreeSizes();
  ChooseGuards({}, profile);
  const ContextBits bits(profile, profile.guards);
  const std::vector<ContextSet> of_types = bits.OfTypes();
  const std::vector<std::pair<uint32_t, uint32_t>> unlike = {{0, 1}, {0, 2}, {1, 2}};
  for (const auto& [smaller, greater] : unlike) {
    ContextSet both = of_types[smaller];
    for (size_t i = 0; i < both.size(); ++i) both[i] |= of_types[greater][i];
    EXPECT_EQ(FindMostAlike(profile, of_types, profile.shapes[0], both), greater) << smaller;
  }
}

// One unit of type 1 does what those of type 0 do, but for what tells them apart first. Each
// further context that type 0 is known by makes that one look like type 0.
TEST(SteadyContexts, AnOddUnitDoesNotKeepTypesFromBeingKnownByMore) {
  constexpr uint32_t kOwn = 10;
  constexpr uint64_t kUnits = 50'000;
  Profile profile = FlatProfile(2 * kOwn);
  AddShape(profile, 0, Functions(0, kOwn), kUnits);
  AddShape(profile, 1, Functions(kOwn, kOwn), kUnits);
  AddShape(profile, 1, Functions(1, kOwn), 1);
  profile.types = {{.units = kUnits}, {.units = kUnits + 1}};
  ChooseGuards({}, profile);
  const std::vector<ContextSet> sets = ContextBits(profile, profile.guards).OfTypes();
  EXPECT_GE(ContextsOf(sets[0]), SteadyContexts::kWanted);
  EXPECT_GE(ContextsOf(sets[1]), SteadyContexts::kWanted);
  EXPECT_GE(profile.quality.right + 1, profile.quality.units);
}

// A unit of a type that enters one more guarded context than ever before is nearer
// to its own type than half.
TEST(SteadyContexts, TypesAreKnownByMoreThanTheyMustBe) {
  uint64_t types = 0;
  uint64_t well_known = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Profile profile = RandomProfile(seed, {.functions = 60, .paths = 80, .shapes = 20});
    FindUnitTypes({.cut_ppm = 300'000}, profile);
    ChooseGuards({}, profile);
    const std::vector<ContextSet> sets = ContextBits(profile, profile.guards).OfTypes();
    for (const ContextSet& set : sets) {
      ++types;
      if (ContextsOf(set) >= 4) ++well_known;
    }
  }
  EXPECT_GE(well_known * 10, types * 9);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
