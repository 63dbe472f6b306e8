// SPDX-License-Identifier: Apache-2.0
#include "guard/misleading_contexts.h"

#include <gtest/gtest.h>

#include "guard/context_bits.h"
#include "guard/flat_profile.h"
#include "guard/guard_choice.h"
#include "guard/random_profile.h"
#include "guard/unit_types.h"

namespace culprit::guard::TEST_FILE {
namespace {

// Functions A (of type X and Z) and N, which a fifth of X's units enter; the one
// unit of Z entered both.
TEST(MisleadingContexts, WhatARareTypeHappenedToEnterIsDropped) {
  Profile profile = FlatProfile(2);
  AddShape(profile, 0, {0}, 80);
  AddShape(profile, 0, {0, 1}, 20);
  AddShape(profile, 1, {0, 1}, 1);
  profile.types = {{.units = 100}, {.units = 1}};
  std::vector<Guard> guards = {{.function = 0, .contexts = {{64}}, .boundary = true},
                               {.function = 1, .contexts = {{64}}}};
  Judgement now = Judge(profile, guards, kBothHalves, kBothHalves);
  EXPECT_EQ(now.right, 81U);
  now = DropMisleadingContexts(profile, kBothHalves, std::move(now), guards);
  EXPECT_EQ(now.right, 100U);
  ASSERT_EQ(guards.size(), 1U);
  EXPECT_EQ(guards[0].function, 0U);
}

TEST(MisleadingContexts, NothingComesOutWorse) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Profile profile = RandomProfile(seed, {.shapes = 30});
    FindUnitTypes({.cut_ppm = 300'000}, profile);
    ChooseGuards({}, profile);
    std::vector<Guard> guards = profile.guards;
    const Judgement before = Judge(profile, guards, kBothHalves, kBothHalves);
    const Judgement after = DropMisleadingContexts(profile, kBothHalves, before, guards);
    EXPECT_GE(after.right, before.right);
    EXPECT_EQ(after.right, Judge(profile, guards, kBothHalves, kBothHalves).right);
  }
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
