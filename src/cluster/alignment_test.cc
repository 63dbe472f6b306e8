// SPDX-License-Identifier: Apache-2.0
#include "cluster/alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "cluster/naive_clustering.h"

namespace culprit::cluster::TEST_FILE {
namespace {

std::vector<Step> AlignWith(const PatternSymbols& columns, const PatternSymbols& rows,
                            const SymbolWords& words, bool columns_are_left) {
  std::vector<std::vector<Fixed>> costs;
  std::vector<const Fixed*> pointers;
  for (const Symbol r : rows) {
    costs.emplace_back();
    for (const Symbol c : columns) costs.back().push_back(words.Substitution(c, r));
  }
  for (const std::vector<Fixed>& row : costs) pointers.push_back(row.data());
  Alignment alignment;
  return alignment.Align(columns.size(), pointers, columns_are_left);
}

// Of all ways to align, the cheapest; of these the first by the order of steps
// from the leaf on. Tries every one.
std::vector<Step> BestOfAll(const PatternSymbols& left, const PatternSymbols& right,
                            const SymbolWords& words) {
  uint64_t best_cost = UINT64_MAX;
  std::vector<Step> best;
  std::vector<Step> steps;
  const std::function<void(size_t, size_t, uint64_t)> go = [&](size_t i, size_t j, uint64_t cost) {
    if (i == 0 && j == 0) {
      if (cost < best_cost || (cost == best_cost && steps < best)) {
        best_cost = cost;
        best = steps;
      }
      return;
    }
    if (i > 0 && j > 0) {
      const Fixed substitution = words.Substitution(left[i - 1], right[j - 1]);
      steps.push_back(substitution == 0 ? Step::kMatch : Step::kSubstitution);
      go(i - 1, j - 1, cost + substitution);
      steps.pop_back();
    }
    if (i > 0) {
      steps.push_back(Step::kDeletion);
      go(i - 1, j, cost + kOne);
      steps.pop_back();
    }
    if (j > 0) {
      steps.push_back(Step::kInsertion);
      go(i, j - 1, cost + kOne);
      steps.pop_back();
    }
  };
  go(left.size(), right.size(), 0);
  return best;
}

std::vector<PatternSymbols> AllPatterns(Symbol symbols, size_t longest) {
  std::vector<PatternSymbols> all = {{}};
  for (size_t begin = 0, length = 1; length <= longest; ++length) {
    const size_t end = all.size();
    for (size_t i = begin; i < end; ++i) {
      for (Symbol s = 0; s < symbols; ++s) {
        PatternSymbols longer = all[i];
        longer.push_back(s);
        all.push_back(std::move(longer));
      }
    }
    begin = end;
  }
  return all;
}

void HoldAgainstAllAlignments(const SymbolWords& words, size_t longest) {
  const std::vector<PatternSymbols> patterns =
      AllPatterns(static_cast<Symbol>(words.size()), longest);
  for (const PatternSymbols& left : patterns) {
    for (const PatternSymbols& right : patterns) {
      const std::vector<Step> expected = BestOfAll(left, right, words);
      ASSERT_EQ(AlignWith(left, right, words, true), expected);
      ASSERT_EQ(AlignWith(right, left, words, false), expected);
      ASSERT_EQ(NaiveSteps(left, right, words), expected);
    }
  }
}

TEST(AlignmentTest, IsTheFirstOfTheCheapestForAllPatternsOfFourFrames) {
  // Costs of 1/2 between the first three, 1 to the last: ties abound.
  SymbolWords words;
  words.AddNamed("a_x");
  words.AddNamed("b_x");
  words.AddUnnamed();
  HoldAgainstAllAlignments(words, 4);
}

TEST(AlignmentTest, IsTheFirstOfTheCheapestWithManyCosts) {
  SymbolWords words;
  words.AddNamed("a_b");
  words.AddNamed("b_c");
  words.AddNamed("a_b_c_d");
  words.AddNamed("_b_a");  // matches the first
  words.AddNamed("e");
  HoldAgainstAllAlignments(words, 3);
}

// 001 figure 3: a match of six, three insertions of wow64, a substitution, a
// match of three.
TEST(AlignmentTest, Figure3OfStackMine) {
  SymbolWords words;
  const auto add = [&](std::initializer_list<const char*> names) {
    PatternSymbols symbols;
    for (const char* name : names) symbols.push_back(words.AddNamed(name));
    return symbols;
  };
  const PatternSymbols head = add({"App_main", "Initialize", "InitComponents", "HashTableOperate",
                                   "GetHashCode", "GetShortPathName"});
  const PatternSymbols wow = add({"wow64Service", "wow64System", "wow64QueryAttr"});
  const PatternSymbols stacks = add({"SwapKernelStack", "ExpandKernelStack"});
  const PatternSymbols tail = add({"MmAccessFault", "MiIssueHardFault", "IoPageRead"});
  PatternSymbols left = head;
  left.push_back(stacks[0]);
  left.insert(left.end(), tail.begin(), tail.end());
  PatternSymbols right = head;
  right.insert(right.end(), wow.begin(), wow.end());
  right.push_back(stacks[1]);
  right.insert(right.end(), tail.begin(), tail.end());

  std::vector<Step> expected(6, Step::kMatch);
  expected.insert(expected.end(), 3, Step::kInsertion);
  expected.push_back(Step::kSubstitution);
  expected.insert(expected.end(), 3, Step::kMatch);
  std::vector<Step> steps = AlignWith(left, right, words, true);
  std::reverse(steps.begin(), steps.end());
  EXPECT_EQ(steps, expected);
}

TEST(AlignmentTest, TheLongestFit) {
  SymbolWords words;
  const Symbol a = words.AddUnnamed();
  const Symbol b = words.AddUnnamed();
  const PatternSymbols left(kMaxFrames, a);
  const PatternSymbols right(kMaxFrames, b);
  EXPECT_EQ(AlignWith(left, right, words, true),
            std::vector<Step>(kMaxFrames, Step::kSubstitution));
  EXPECT_EQ(AlignWith(left, {}, words, true), std::vector<Step>(kMaxFrames, Step::kDeletion));
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
