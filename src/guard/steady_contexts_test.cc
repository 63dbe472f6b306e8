// SPDX-License-Identifier: Apache-2.0
#include "guard/steady_contexts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "guard/context_bits.h"
#include "guard/flat_profile.h"
#include "guard/guard_choice.h"
#include "guard/random_profile.h"
#include "guard/unit_types.h"

namespace culprit::guard {
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
      uint32_t contexts = 0;
      for (const uint64_t word : set) contexts += static_cast<uint32_t>(__builtin_popcountll(word));
      ++types;
      if (contexts >= 4) ++well_known;
    }
  }
  EXPECT_GE(well_known * 10, types * 9);
}

}  // namespace
}  // namespace culprit::guard
