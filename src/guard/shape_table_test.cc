// SPDX-License-Identifier: Apache-2.0
#include "guard/shape_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace culprit::guard::TEST_FILE {
namespace {

constexpr uint32_t kOuter = 0, kEarly = 1, kLate = 2, kOther = 3;

// "outer/late" of the places of a shape, and of the only one.
std::vector<std::string> PathsOf(const Profile& profile, const UnitShape& shape) {
  std::vector<std::string> names;
  for (const uint32_t place : shape.places) {
    std::string name;
    for (uint32_t at = profile.places[place].path; at != kNoIndex; at = profile.paths[at].parent) {
      name = std::to_string(profile.paths[at].function) + (name.empty() ? "" : "/") + name;
    }
    names.push_back(name);
  }
  return names;
}
std::vector<std::string> PathsOf(const Profile& profile) {
  return PathsOf(profile, profile.shapes.at(0));
}

Profile OneUnit(const std::vector<std::tuple<uint32_t, int32_t, CallOrigin>>& entries) {
  ShapeTable table(100, 1 << 20);
  table.BeginIteration(1000, 0);
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

// The first goes on where it waited, below a call that was made before it; the second makes
// that call itself.
TEST(ShapeTable, PathsBeginBelowTheLoopWhereverTheUnitBegins) {
  constexpr uint64_t kBase16 = 1000;
  ShapeTable table(100, 1 << 20);
  table.Pass(kOther, kBase16, kNoIndex);  // the loop's own function
  table.Pass(kOuter, kBase16 - 2, kOther);
  table.Pass(kEarly, kBase16 - 4, kOuter);  // waits
  table.BeginIteration(kBase16, kBase16 - 6);
  table.Enter(kLate, 5, {8, kOuter}, ShapeTable::kRunning);
  table.EndUnit(ShapeTable::kRunning, wire::UnitKind::kIteration, 0, 0);
  table.BeginIteration(kBase16, kBase16 - 1);
  table.Enter(kOuter, 2, {7, kOther}, ShapeTable::kRunning);
  table.Enter(kLate, 5, {8, kOuter}, ShapeTable::kRunning);
  table.EndUnit(ShapeTable::kRunning, wire::UnitKind::kIteration, 0, 0);
  // Of this one nobody knows what it was called by.
  table.LoseStack();
  table.BeginIteration(kBase16, kBase16 - 6);
  table.Enter(kLate, 5, {8, kOuter}, ShapeTable::kRunning);
  table.EndUnit(ShapeTable::kRunning, wire::UnitKind::kIteration, 0, 0);
  Profile profile;
  table.MoveTo(profile);
  std::set<std::vector<std::string>> units;
  for (const UnitShape& shape : profile.shapes) units.insert(PathsOf(profile, shape));
  EXPECT_EQ(units, (std::set<std::vector<std::string>>{{"0/2"}, {"0/2", "0"}, {"2"}}));
  EXPECT_EQ(profile.places.size(), 3U);
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
}  // namespace culprit::guard::TEST_FILE
