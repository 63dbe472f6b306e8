// SPDX-License-Identifier: Apache-2.0
// Recursion: items that repeat many times in a sequence must not explode. The
// bounds on time are a hundred times what is needed, and nothing beside what
// listing subsequences would take.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "mine/maximal.h"
#include "mine/naive_maximal.h"
#include "mine/prefix_miner.h"

namespace culprit::mine::TEST_FILE {
namespace {

using Sequence = std::vector<Symbol>;

constexpr int64_t kFarBelowExplosionNs = 60'000'000'000;

MaximalResult MineInTime(const WeightedSequences& sequences, int64_t lambda) {
  MaximalResult result =
      MineMaximal(sequences, {.lambda = lambda, .jobs = 1, .max_time_ns = kFarBelowExplosionNs});
  EXPECT_FALSE(result.truncated) << result.why;
  return result;
}

Sequence Around(Symbol first, const Sequence& cycle, size_t times, Symbol last) {
  Sequence sequence = {first};
  for (size_t i = 0; i < times; ++i) sequence.insert(sequence.end(), cycle.begin(), cycle.end());
  sequence.push_back(last);
  return sequence;
}

TEST(Recursion, ACycleOfVaryingLengthIsWalkedOnce) {
  WeightedSequences sequences;
  for (size_t times = 1; times <= 40; ++times) sequences.Add(Around(9, {1, 2, 3}, times, 8), 1);
  const MaximalResult result = MineInTime(sequences, 11);
  ASSERT_EQ(result.patterns.size(), 1U);
  EXPECT_EQ(result.patterns[0].symbols, Around(9, {1, 2, 3}, 30, 8));
  EXPECT_EQ(result.patterns[0].cost, 11);
}

// The functions of the cycle also appear apart, in other orders and with other
// leaves, so that nothing of it can be joined beforehand.
TEST(Recursion, ACycleAmongOtherUsesOfItsFunctions) {
  WeightedSequences sequences;
  for (size_t times = 12; times <= 24; ++times) {
    for (Symbol leaf = 20; leaf < 23; ++leaf) {
      sequences.Add(Around(9, {1, 2, 3}, times, leaf), 10);
    }
  }
  for (const Sequence& other :
       {Sequence{9, 1, 20}, Sequence{9, 2, 21}, Sequence{3, 9, 22}, Sequence{9, 3, 1, 20},
        Sequence{2, 1, 9}, Sequence{9, 2, 2, 3, 22}, Sequence{1, 3, 2}, Sequence{3, 3, 20}}) {
    sequences.Add(other, 60);
  }
  const MaximalResult result = MineInTime(sequences, 60);
  const Sequence longest = Around(9, {1, 2, 3}, 19, 20);
  EXPECT_TRUE(std::ranges::any_of(result.patterns, [&](const Pattern& pattern) {
    return pattern.symbols == longest && pattern.cost == 60;
  }));
  EXPECT_TRUE(std::ranges::any_of(result.patterns, [&](const Pattern& pattern) {
    return pattern.symbols == Sequence{1, 3, 2} || NaiveContains(pattern.symbols, {1, 3, 2});
  }));
}

TEST(Recursion, AFunctionThatCallsItselfTenThousandTimes) {
  WeightedSequences sequences;
  sequences.Add(Around(1, {2}, 10'000, 3), 5);
  sequences.Add(Around(1, {2}, 9'000, 4), 5);
  const MaximalResult result = MineInTime(sequences, 10);
  ASSERT_EQ(result.patterns.size(), 1U);
  Sequence expected(9'001, 2);
  expected[0] = 1;
  EXPECT_EQ(result.patterns[0].symbols, expected);
}

TEST(Recursion, TwoFunctionsThatCallEachOtherTenThousandFramesDeep) {
  WeightedSequences sequences;
  sequences.Add(Around(1, {2, 5}, 5'000, 3), 5);
  sequences.Add(Around(1, {2, 5}, 4'000, 2), 5);
  sequences.Add(Sequence{5, 1, 2}, 4);
  const MaximalResult result = MineInTime(sequences, 10);
  ASSERT_EQ(result.patterns.size(), 1U);
  Sequence expected = Around(1, {2, 5}, 4'000, 2);
  EXPECT_EQ(result.patterns[0].symbols, expected);
}

TEST(Recursion, AStackTenThousandFramesDeepWithoutAny) {
  WeightedSequences sequences;
  Sequence deep(10'000);
  for (size_t i = 0; i < deep.size(); ++i) deep[i] = static_cast<Symbol>(i);
  sequences.Add(deep, 5);
  Sequence sparse;
  for (size_t i = 0; i < deep.size(); i += 3) sparse.push_back(deep[i]);
  sequences.Add(sparse, 5);
  std::reverse(deep.begin(), deep.end());
  sequences.Add(deep, 1);
  const MaximalResult result = MineInTime(sequences, 10);
  ASSERT_EQ(result.patterns.size(), 1U);
  EXPECT_EQ(result.patterns[0].symbols, sparse);
}

// The miner that takes over in deep recursion, held against the definition
// directly: small databases seldom reach it otherwise.
TEST(PrefixMiner, FindsEveryMaximalPattern) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    const auto alphabet = static_cast<Symbol>(2 + seed % 5);
    Database data;
    WeightedSequences sequences;
    for (size_t count = 1 + random() % 7; count > 0; --count) {
      Sequence sequence(1 + random() % 9);
      for (Symbol& symbol : sequence) symbol = static_cast<Symbol>(random() % alphabet);
      const auto cost = static_cast<int64_t>(1 + random() % 3);
      data.sequences.Add(sequence);
      data.costs.push_back(cost);
      sequences.Add(sequence, cost);
    }
    const int64_t lambda = 2 + static_cast<int64_t>(random() % 6);
    Budget budget(0, 0, 0);
    Allowance allowance(budget);
    SequenceList found;
    PrefixMiner(data, alphabet, lambda, allowance).Mine(found);
    for (const Pattern& pattern : NaiveMaximal(sequences, lambda)) {
      bool there = false;
      for (size_t f = 0; f < found.size(); ++f) {
        there = there || std::ranges::equal(found.at(f), pattern.symbols);
      }
      ASSERT_TRUE(there) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace culprit::mine::TEST_FILE
