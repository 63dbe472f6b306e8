// SPDX-License-Identifier: Apache-2.0
#include "guard/shape_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace culprit::guard {
namespace {

constexpr uint32_t kOuter = 0, kEarly = 1, kLate = 2, kOther = 3;

// "outer/late" of the places of the only shape.
std::vector<std::string> PathsOf(const Profile& profile) {
  std::vector<std::string> names;
  for (const uint32_t place : profile.shapes.at(0).places) {
    std::string name;
    for (uint32_t at = profile.places[place].path; at != kNoIndex; at = profile.paths[at].parent) {
      name = std::to_string(profile.paths[at].function) + (name.empty() ? "" : "/") + name;
    }
    names.push_back(name);
  }
  return names;
}

Profile OneUnit(const std::vector<std::tuple<uint32_t, int32_t, CallOrigin>>& entries) {
  ShapeTable table(100, 1 << 20);
  table.BeginIteration();
  for (const auto& [function, depth16, origin] : entries) {
    table.Enter(function, depth16, origin, ShapeTable::kRunning);
  }
  table.EndUnit(ShapeTable::kRunning, wire::UnitKind::kIteration, 0, 0);
  Profile profile;
  table.MoveTo(profile);
  return profile;
}

// A function that calls one before it has made its whole frame and another after:
// the first is no parent of the second, although it was entered further out.
TEST(ShapeTable, AFrameBetweenAnEntryAndItsCallerIsGone) {
  EXPECT_EQ(PathsOf(OneUnit({{kOuter, 2, {}}, {kEarly, 4, {7, kOuter}}, {kLate, 9, {8, kOuter}}})),
            (std::vector<std::string>{"0", "0/1", "0/2"}));
  EXPECT_EQ(PathsOf(OneUnit({{kOuter, 2, {}}, {kEarly, 4, {7, kOuter}}, {kLate, 9, {8, kEarly}}})),
            (std::vector<std::string>{"0", "0/1", "0/1/2"}));
}

// A caller that was never seen to be entered says nothing about the stack.
TEST(ShapeTable, AnUnpatchedCallerLeavesTheStackAsItIs) {
  const Profile profile =
      OneUnit({{kOuter, 2, {}}, {kEarly, 4, {7, kOuter}}, {kLate, 9, {8, kOther}}});
  EXPECT_EQ(PathsOf(profile), (std::vector<std::string>{"0", "0/1", "0/1/2"}));
}

TEST(ShapeTable, OnePathCalledFromTwoPlacesIsTwoPlaces) {
  const Profile profile = OneUnit({{kOuter, 2, {}},
                                   {kEarly, 4, {7, kOuter}},
                                   {kEarly, 4, {8, kOuter}},
                                   {kEarly, 4, {7, kOuter}}});
  ASSERT_EQ(profile.paths.size(), 2U);
  ASSERT_EQ(profile.places.size(), 3U);
  EXPECT_EQ(profile.places[1].caller, 7U);
  EXPECT_EQ(profile.places[2].caller, 8U);
  EXPECT_EQ(profile.shapes[0].hits, (std::vector<uint64_t>{1, 2, 1}));
}

TEST(ShapeTable, ACallerAtTooManyDepthsKeepsOnePlaceOfVariableDepth) {
  std::vector<std::tuple<uint32_t, int32_t, CallOrigin>> entries = {{kOuter, 2, {}}};
  for (int32_t i = 0; i < 20; ++i) entries.push_back({kEarly, 40 - i, {7, kOuter}});
  const Profile profile = OneUnit(entries);
  EXPECT_EQ(profile.places.size(), 1 + ShapeTable::kMaxDepths + 1);
  EXPECT_EQ(profile.places.back().depth, kVariableDepth);
}

}  // namespace
}  // namespace culprit::guard
