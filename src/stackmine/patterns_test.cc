// SPDX-License-Identifier: Apache-2.0
//
// What is mined of hand-made and of random evidence: the rounds cover every
// stack that could be covered, and count it whole.
#include "stackmine/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "stackmine/stack_match.h"

namespace culprit::stackmine::TEST_FILE {
namespace {

// Evidence of waits alone: a stack is a text of one letter a frame.
class WaitEvidence {
 public:
  void Add(const std::string& letters, int64_t cost_ns) {
    StackIndex stack = kNoStack;
    for (const char letter : letters) {
      const std::string name = std::string("m!") + letter;
      stack = evidence_.stacks.InternStack(stack, evidence_.stacks.InternFrame(name, 2, true));
    }
    const NodeIndex node = evidence_.forest.Intern({.stack = stack, .kind = PathKind::kWait});
    evidence_.rows.push_back({.node = node, .events = 1, .cost_ns = cost_ns});
    evidence_.account.aoi_ns += cost_ns;
  }
  const Evidence& evidence() const { return evidence_; }
  std::string Text(const MinedPattern& pattern) const {
    std::string text;
    for (const FrameSymbol frame : pattern.frames) text += evidence_.stacks.Function(frame);
    return text + "=" + std::to_string(pattern.cost_ns);
  }

 private:
  Evidence evidence_;
};

std::vector<std::string> Mine(const WaitEvidence& waits, int64_t lambda_ns, bool once = false) {
  PatternOptions options;
  options.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = lambda_ns};
  options.once = once;
  std::vector<std::string> texts;
  const MinedPatterns mined =
      MinePatterns(waits.evidence(), CostsOfStacks(waits.evidence()), options);
  for (const MinedPattern& pattern : mined.patterns) texts.push_back(waits.Text(pattern));
  return texts;
}

TEST(Patterns, ACallersOwnTimeIsFoundBesideThatOfACostlyCallee) {
  WaitEvidence waits;
  waits.Add("abc", 50);
  waits.Add("ab", 100);
  EXPECT_EQ(Mine(waits, 10, true), std::vector<std::string>{"abc=50"});
  EXPECT_EQ(Mine(waits, 10), (std::vector<std::string>{"abc=50", "ab=150"}));
}

TEST(Patterns, WhatIsLeftAndCostsTooLittleIsNoPattern) {
  WaitEvidence waits;
  waits.Add("abc", 50);
  waits.Add("ab", 9);
  EXPECT_EQ(Mine(waits, 10), std::vector<std::string>{"abc=50"});
}

TEST(Patterns, RoundsGoOnDownAChainOfCallers) {
  WaitEvidence waits;
  waits.Add("abcd", 40);
  waits.Add("abc", 30);
  waits.Add("ab", 20);
  waits.Add("a", 10);
  EXPECT_EQ(Mine(waits, 10), (std::vector<std::string>{"abcd=40", "abc=70", "ab=90", "a=100"}));
}

// However the stacks lie: those that hold no pattern have no costly subsequence
// among themselves, and what was found costs what a plain count says.
TEST(Patterns, NothingCostlyIsLeftUncovered) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    WaitEvidence waits;
    for (int i = 0; i < 12; ++i) {
      std::string letters;
      for (uint32_t n = 1 + random() % 5; n > 0; --n) {
        letters += static_cast<char>('a' + random() % 4);
      }
      waits.Add(letters, 1 + random() % 20);
    }
    const int64_t lambda_ns = 5 + random() % 30;
    PatternOptions options;
    options.lambda = {.kind = LambdaRule::Kind::kCost, .cost_ns = lambda_ns};
    const StackCosts costs = CostsOfStacks(waits.evidence());
    const MinedPatterns mined = MinePatterns(waits.evidence(), costs, options);
    std::vector<int64_t> counted(mined.patterns.size());
    std::vector<int64_t> left_by_frame(waits.evidence().stacks.frames());
    std::vector<FrameSymbol> frames;
    for (const StackCost& cost : costs.stacks) {
      waits.evidence().stacks.Frames(cost.stack, frames);
      bool covered = false;
      for (size_t p = 0; p < mined.patterns.size(); ++p) {
        if (!IsSubsequence(mined.patterns[p].frames, frames)) continue;
        counted[p] += cost.cost_ns;
        covered = true;
      }
      if (covered) continue;
      std::sort(frames.begin(), frames.end());
      frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
      for (const FrameSymbol frame : frames) left_by_frame[frame] += cost.cost_ns;
    }
    for (size_t p = 0; p < counted.size(); ++p) {
      EXPECT_EQ(counted[p], mined.patterns[p].cost_ns) << round;
      EXPECT_GE(counted[p], lambda_ns) << round;
    }
    for (const int64_t left_ns : left_by_frame) EXPECT_LT(left_ns, lambda_ns) << round;
  }
}

}  // namespace
}  // namespace culprit::stackmine::TEST_FILE
