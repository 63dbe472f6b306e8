// SPDX-License-Identifier: Apache-2.0
#include "guard/affordable_guards.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "guard/context_bits.h"
#include "guard/flat_profile.h"
#include "guard/guard_choice.h"
#include "guard/random_profile.h"
#include "guard/type_judgement.h"
#include "guard/unit_types.h"

namespace culprit::guard::TEST_FILE {
namespace {

// Function 0 tells the rare type 2, function 1 the two common ones, each with a context of
// its own; function 2 cuts sub-units.
Profile ADearGuardBehindACheapOne() {
  Profile profile = FlatProfile(3);
  AddShape(profile, 0, {1}, 400);
  AddShape(profile, 1, {}, 500);
  AddShape(profile, 2, {0, 1}, 100);
  profile.types = {{.units = 400}, {.units = 500}, {.units = 100}};
  profile.guards = {
      {.function = 2, .boundary = true, .hits_per_mega_unit = 1'000'000},
      {.function = 0, .contexts = {{64}}, .hits_per_mega_unit = 100'000},
      {.function = 1, .contexts = {{64}}, .hits_per_mega_unit = 500'000},
  };
  return profile;
}

std::vector<uint32_t> TakenFor(const Profile& profile, uint64_t hits_per_mega_unit) {
  return ChooseAffordable(profile, {.max_hits_per_mega_unit = hits_per_mega_unit}).numbers;
}

TEST(AffordableGuards, AGuardThatTellsMoreIsTakenInPlaceOfOneBeforeIt) {
  const Profile profile = ADearGuardBehindACheapOne();
  using Numbers = std::vector<uint32_t>;
  // What cuts sub-units is taken whatever it costs.
  EXPECT_EQ(TakenFor(profile, 0), Numbers({0}));
  EXPECT_EQ(TakenFor(profile, 1'100'000), Numbers({0, 1}));
  EXPECT_EQ(TakenFor(profile, 1'500'000), Numbers({0, 2}));
  EXPECT_EQ(TakenFor(profile, 1'600'000), Numbers({0, 1, 2}));
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2}));
  const AffordableGuards some = ChooseAffordable(profile, {.max_hits_per_mega_unit = 1'500'000});
  EXPECT_EQ(some.hits_per_mega_unit, 1'500'000U);
  EXPECT_EQ(some.units, 1000U);
  EXPECT_EQ(some.right, 900U);
}

// What is entered again and again and says what another says is for nothing; if it says more, it
// is not.
TEST(AffordableGuards, ADearGuardIsTakenOnlyIfItTellsSomething) {
  Profile profile = ADearGuardBehindACheapOne();
  using Numbers = std::vector<uint32_t>;
  profile.guards.push_back({.function = 1, .contexts = {{64}}, .hits_per_mega_unit = 1'000'000});
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2, 3}));
  profile.guards.back().hits_per_mega_unit = 1'000'001;
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2}));
  profile.guards.back().gain_microbits = 1;
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2, 3}));
  profile.guards.back().gain_microbits = 0;
  profile.guards.erase(profile.guards.begin() + 2);
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2})) << "the only one that tells";
}

// One unit of 901 is told right by it: as much as 1.1 hits a unit are worth.
TEST(AffordableGuards, ADearGuardIsNotTakenForHardlyAnyUnit) {
  Profile profile = ADearGuardBehindACheapOne();
  using Numbers = std::vector<uint32_t>;
  profile.shapes[2].units[0] = 1;
  profile.types[2].units = 1;
  Guard& rare = profile.guards[1];
  rare.hits_per_mega_unit = 1'109'000;
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2}));
  rare.hits_per_mega_unit = 1'110'000;
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 2}));
}

// Some units of the common type enter what is the rare one's only context that can be afforded.
TEST(AffordableGuards, AGuardThatMisleadsWithoutTheOthersIsLeftOut) {
  Profile profile = FlatProfile(3);
  AddShape(profile, 0, {2}, 400);
  AddShape(profile, 0, {0, 2}, 100);
  AddShape(profile, 1, {0, 1}, 10);
  profile.types = {{.units = 500}, {.units = 10}};
  profile.guards = {
      {.function = 0, .contexts = {{64}}, .hits_per_mega_unit = 216'000, .gain_microbits = 1},
      {.function = 1, .contexts = {{64}}, .hits_per_mega_unit = 300'000, .gain_microbits = 1},
      {.function = 2, .contexts = {{64}}, .hits_per_mega_unit = 980'000, .gain_microbits = 1},
  };
  using Numbers = std::vector<uint32_t>;
  EXPECT_EQ(TakenFor(profile, UINT64_MAX), Numbers({0, 1, 2})) << "all units are told right";
  EXPECT_EQ(TakenFor(profile, 250'000), Numbers()) << "100 units would be told wrong";
  EXPECT_EQ(TakenFor(profile, 516'000), Numbers({1}));
}

// Against taking them in order, as far as they fit.
TEST(AffordableGuards, AreWithinTheirBudgetAndTellNoLessThanTheFirstOnes) {
  uint64_t better = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Profile profile = RandomProfile(seed, {.functions = 60, .paths = 80, .shapes = 20});
    FindUnitTypes({.cut_ppm = 300'000}, profile);
    ChooseGuards({}, profile);
    uint64_t all_hits = 0;
    for (const Guard& guard : profile.guards) all_hits += guard.hits_per_mega_unit;
    for (const uint64_t share : {0, 1, 2, 4, 6}) {
      const uint64_t limit = all_hits * share / 8;
      std::vector<Guard> in_order;
      uint64_t least = 0;
      uint64_t hits = 0;
      for (const Guard& guard : profile.guards) {
        if (guard.boundary) least += guard.hits_per_mega_unit;
        if (!guard.boundary && hits + guard.hits_per_mega_unit > limit) continue;
        hits += guard.hits_per_mega_unit;
        in_order.push_back(guard);
      }
      const AffordableGuards chosen = ChooseAffordable(profile, {.max_hits_per_mega_unit = limit});
      EXPECT_LE(chosen.hits_per_mega_unit, std::max(limit, least));
      const Judgement first = Judge(profile, in_order, kBothHalves, kBothHalves);
      EXPECT_EQ(Judge(profile, GuardsOf(profile, chosen), kBothHalves, kBothHalves).right,
                chosen.right);
      EXPECT_EQ(first.units, chosen.units);
      EXPECT_GE(chosen.right, first.right) << "seed " << seed << " share " << share;
      if (chosen.right > first.right) ++better;
    }
  }
  EXPECT_GT(better, 0U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
