// SPDX-License-Identifier: Apache-2.0
#include "guard/context_numbers.h"

#include <gtest/gtest.h>

#include "guard/naive_contexts.h"
#include "guard/random_profile.h"

namespace culprit::guard::TEST_FILE {
namespace {

using Clarity = ContextNumbers::Clarity;

constexpr uint32_t kOuter = 0, kInner = 1, kOther = 2;
constexpr int32_t kDepth = 64;

// One unit enters each of these paths, at one depth and from one caller.
Profile EntersAll(std::vector<CallPath> paths, const std::vector<uint32_t>& entered) {
  Profile profile;
  profile.functions.resize(3);
  profile.paths = std::move(paths);
  UnitShape shape;
  for (const uint32_t path : entered) {
    shape.places.push_back(static_cast<uint32_t>(profile.places.size()));
    shape.hits.push_back(1);
    profile.places.push_back({path, kDepth, 0});
  }
  shape.units[0] = 1;
  profile.shapes.push_back(shape);
  return profile;
}

TEST(ContextNumbers, PathsThatDifferAreAmbiguous) {
  const ContextNumbers numbers(
      EntersAll({{kNoIndex, kOuter}, {0, kInner}, {kNoIndex, kOther}, {2, kInner}}, {1, 3}));
  EXPECT_EQ(numbers.ClarityOf(0), Clarity::kAmbiguous);
  EXPECT_EQ(numbers.ClarityOf(1), Clarity::kAmbiguous);
  EXPECT_EQ(numbers.size(), 0U);
}

// The log began inside of the outer function.
TEST(ContextNumbers, APathWithoutItsBeginIsTheSame) {
  const ContextNumbers numbers(
      EntersAll({{kNoIndex, kOuter}, {0, kInner}, {kNoIndex, kInner}}, {1, 2}));
  EXPECT_EQ(numbers.ClarityOf(0), Clarity::kClear);
  EXPECT_EQ(numbers.ClarityOf(1), Clarity::kClear);
  EXPECT_EQ(numbers.OfPlace(0), numbers.OfPlace(1));
}

// It may be the end of either.
TEST(ContextNumbers, APathWithoutItsBeginMakesOthersNoMoreAlike) {
  const ContextNumbers numbers(EntersAll(
      {{kNoIndex, kInner}, {kNoIndex, kOuter}, {1, kInner}, {kNoIndex, kOther}, {3, kInner}},
      {2, 0, 4}));
  for (uint32_t place = 0; place < 3; ++place) {
    EXPECT_EQ(numbers.ClarityOf(place), Clarity::kAmbiguous) << place;
  }
}

TEST(ContextNumbers, AreThoseOfTheDefinition) {
  uint64_t by_caller = 0;
  uint64_t none = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Profile profile = RandomProfile(seed, {.functions = 6, .paths = 40, .loops = 2});
    const ContextNumbers numbers(profile);
    for (const UnitShape& shape : profile.shapes) {
      std::vector<CalledContext> found;
      for (const uint32_t number : numbers.OfShape(shape)) found.push_back(numbers.at(number));
      ASSERT_EQ(found, NaiveContexts(profile, shape)) << seed;
    }
    for (uint32_t i = 0; i < profile.places.size(); ++i) {
      const uint32_t number = numbers.OfPlace(i);
      if (number == kNoIndex) ++none;
      if (number != kNoIndex && numbers.at(number).context.caller != kNoIndex) ++by_caller;
    }
  }
  EXPECT_GT(by_caller, 100U);
  EXPECT_GT(none, 20U);
}

// Two commands that call the same helper at the same depth: only the caller of
// the helper says which it was, and what the helper calls is not known at all.
TEST(ContextNumbers, ACallerTellsWhoCalledAndNotWhoCalledHim) {
  Profile profile;
  profile.modules = {{"ab01", "/bin/program"}};
  for (uint32_t i = 0; i < 4; ++i) profile.functions.push_back({0, 0x1000 + i * 0x100ULL, {}});
  profile.callers = {{0, 0x1010}, {0, 0x1110}, {0, 0x1210}};
  profile.paths = {{kNoIndex, 0}, {kNoIndex, 1}, {0, 2}, {1, 2}, {2, 3}, {3, 3}};
  profile.places = {{0, 16}, {1, 16}, {2, 64, 0}, {3, 64, 1}, {4, 96, 2}, {5, 96, 2}};
  profile.loops.resize(1);
  profile.shapes.push_back({.places = {0, 1, 2, 3, 4, 5}, .hits = {1, 1, 1, 1, 1, 1}});
  const ContextNumbers numbers(profile);
  EXPECT_EQ(numbers.ClarityOf(0), Clarity::kClear);
  EXPECT_EQ(numbers.ClarityOf(2), Clarity::kByCaller);
  EXPECT_EQ(numbers.ClarityOf(4), Clarity::kAmbiguous);
  EXPECT_EQ(numbers.at(numbers.OfPlace(3)), (CalledContext{2, {64, 1}}));
  EXPECT_EQ(numbers.OfPlace(5), kNoIndex);
  // Nobody mistakes units of different loops for each other.
  profile.loops.resize(2);
  profile.shapes[0].places = {0, 2, 4};
  profile.shapes.push_back({.loop = 1, .places = {1, 3, 5}, .hits = {1, 1, 1}});
  const ContextNumbers apart(profile);
  EXPECT_EQ(apart.ClarityOf(4), Clarity::kClear);
  EXPECT_EQ(apart.OfPlace(4), apart.OfPlace(5));
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
