// SPDX-License-Identifier: Apache-2.0
#include "episode/units.h"

#include <gtest/gtest.h>

#include "episode/spread.h"
#include "episode/syscall_trace.h"

namespace culprit::episode::TEST_FILE {
namespace {

// Groups of four calls a microsecond apart, then a millisecond of nothing.
SyscallTrace Groups(int groups) {
  SyscallTrace made;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t i = 0; i < 20; ++i) {
      made.Call("t", "read", group * 1'000'000 + i * 2'000, 1'000);
    }
  }
  return made;
}

std::vector<uint32_t> Sizes(const Units& units) {
  std::vector<uint32_t> sizes;
  for (const Unit& unit : units.units) sizes.push_back(unit.count);
  return sizes;
}

TEST(Units, AreCutAtLongGaps) {
  SymbolTable symbols;
  const SyscallTrace made = Groups(3);
  const Units units = SplitUnits(made.Log(symbols));
  EXPECT_EQ(Sizes(units), (std::vector<uint32_t>{20, 20, 20}));
  EXPECT_EQ(units.gaps, 59u);
  EXPECT_EQ(units.units[1], (Unit{.thread = 0, .first = 20, .count = 20}));
}

TEST(Units, TimeOffTheCpuDoesNotCut) {
  SymbolTable symbols;
  SyscallTrace made = Groups(3);
  made.small.Add(trace::EventKind::kReady, "t", 40'000, 999'000);
  const Units units = SplitUnits(made.Log(symbols));
  EXPECT_EQ(Sizes(units), (std::vector<uint32_t>{40, 20}));
  EXPECT_EQ(units.explained, 1u);
}

TEST(Units, WithoutSwitchesAChangeOfTheCpuExplainsAGap) {
  SymbolTable symbols;
  SyscallTrace made = Groups(3);
  made.small.trace.metadata.has_switches = false;
  for (size_t i = 20; i < made.small.trace.events.size(); ++i) made.small.trace.events[i].cpu = 1;
  const Units units = SplitUnits(made.Log(symbols));
  EXPECT_EQ(Sizes(units), (std::vector<uint32_t>{40, 20}));
}

TEST(Units, InstancesCutWhereTheyBeginAndEndAndGapsOnlyOutside) {
  SymbolTable symbols;
  SyscallTrace made = Groups(4);
  // From the sixth call of the first group to the eleventh of the second.
  made.small.AddInstance("get", "t", 10'000, 1'020'000);
  made.small.AddInstance("set", "t", 3'000'000, 3'040'000);
  const SyscallLog log = made.Log(symbols);
  const Units units = SplitUnits(log);
  EXPECT_EQ(Sizes(units), (std::vector<uint32_t>{5, 25, 10, 20, 20}));
  EXPECT_EQ(units.instances, 2u);
  const Units at_gaps = SplitUnits(log, UnitSource::kGaps);
  EXPECT_EQ(Sizes(at_gaps), (std::vector<uint32_t>{20, 20, 20, 20}));
  EXPECT_EQ(at_gaps.instances, 0u);
}

TEST(Units, NestedInstancesAllCut) {
  SymbolTable symbols;
  SyscallTrace made = Groups(1);
  made.small.AddInstance("iteration", "t", 4'000, 30'000);
  made.small.AddInstance("handler", "t", 10'000, 20'000);
  EXPECT_EQ(Sizes(SplitUnits(made.Log(symbols))), (std::vector<uint32_t>{2, 3, 5, 5, 5}));
}

TEST(Units, OfSeveralThreadsCoverEveryCallOnce) {
  SymbolTable symbols;
  SyscallTrace made = Groups(4);
  made.Call("u", "read", 5, 1);
  made.Call("v", "read", 5, 1);
  made.Call("v", "read", 900'000'000, 1);
  const SyscallLog log = made.Log(symbols);
  const Units units = SplitUnits(log);
  std::vector<size_t> next(log.threads.size());
  for (const Unit& unit : units.units) {
    EXPECT_EQ(unit.first, next[unit.thread]);
    EXPECT_GT(unit.count, 0u);
    next[unit.thread] += unit.count;
  }
  for (size_t i = 0; i < next.size(); ++i) EXPECT_EQ(next[i], log.threads[i].calls.size());
}

TEST(Units, OfAnEmptyLogAreNone) { EXPECT_TRUE(SplitUnits({}).units.empty()); }

TEST(Spread, DecidesExactly) {
  Spread spread;  // mean 2, sigma 1
  for (const uint64_t value : {1, 3, 1, 3}) spread.Add(value);
  EXPECT_FALSE(spread.IsOutlier(4));  // the bound itself is not above it
  EXPECT_TRUE(spread.IsOutlier(5));
  EXPECT_FALSE(spread.IsOutlier(0));
  EXPECT_EQ(spread.Bound(), 4u);
  Spread equal;
  for (int i = 0; i < 10; ++i) equal.Add(7);
  EXPECT_FALSE(equal.IsOutlier(7));
  EXPECT_TRUE(equal.IsOutlier(8));
  EXPECT_FALSE(Spread().IsOutlier(1));
}

}  // namespace
}  // namespace culprit::episode::TEST_FILE
