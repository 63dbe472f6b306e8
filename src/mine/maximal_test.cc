// SPDX-License-Identifier: Apache-2.0
#include "mine/maximal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "mine/naive_maximal.h"

namespace culprit::mine::TEST_FILE {
namespace {

using Sequence = std::vector<Symbol>;

WeightedSequences Make(const std::vector<std::pair<Sequence, int64_t>>& sequences) {
  WeightedSequences made;
  for (const auto& [sequence, cost] : sequences) made.Add(sequence, cost);
  return made;
}

std::string Show(const std::vector<Pattern>& patterns) {
  std::string text;
  for (const Pattern& pattern : patterns) {
    for (const Symbol symbol : pattern.symbols) text += std::to_string(symbol) + " ";
    text += ": " + std::to_string(pattern.cost) + "\n";
  }
  return text;
}

std::string Show(const WeightedSequences& sequences) {
  std::vector<Pattern> rows;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto sequence = sequences.at(i);
    rows.push_back({{sequence.begin(), sequence.end()}, sequences.costs[i]});
  }
  return Show(rows);
}

std::vector<Pattern> Mine(const WeightedSequences& sequences, int64_t lambda, size_t jobs = 1) {
  const MaximalResult result = MineMaximal(sequences, {.lambda = lambda, .jobs = jobs});
  EXPECT_FALSE(result.truncated);
  EXPECT_EQ(result.why, "");
  return result.patterns;
}

// All sequences over {0 .. alphabet-1} of length 1 to `longest`.
std::vector<Sequence> AllSequences(Symbol alphabet, size_t longest) {
  std::vector<Sequence> all = {{}};
  for (size_t begin = 0, length = 1; length <= longest; ++length) {
    const size_t end = all.size();
    for (; begin < end; ++begin) {
      for (Symbol symbol = 0; symbol < alphabet; ++symbol) {
        Sequence longer = all[begin];
        longer.push_back(symbol);
        all.push_back(longer);
      }
    }
  }
  all.erase(all.begin());
  return all;
}

void ExpectExact(const WeightedSequences& sequences, int64_t lambda) {
  const std::vector<Pattern> expected = NaiveMaximal(sequences, lambda);
  const std::vector<Pattern> mined = Mine(sequences, lambda);
  ASSERT_EQ(Show(mined), Show(expected)) << "lambda " << lambda << " of\n" << Show(sequences);
}

// Three sequences with costs 1, 2 and 4: each lambda asks for another subset.
TEST(MineMaximal, IsExactOnAllTriplesOfShortSequencesOverTwoSymbols) {
  const std::vector<Sequence> all = AllSequences(2, 4);
  for (const Sequence& a : all) {
    for (const Sequence& b : all) {
      for (const Sequence& c : all) {
        const WeightedSequences sequences = Make({{a, 1}, {b, 2}, {c, 4}});
        for (const int64_t lambda : {3, 5, 6, 7}) ExpectExact(sequences, lambda);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(MineMaximal, IsExactOnAllPairsOfSequencesOverThreeSymbols) {
  const std::vector<Sequence> all = AllSequences(3, 4);
  for (const Sequence& a : all) {
    for (const Sequence& b : all) {
      const WeightedSequences sequences = Make({{a, 1}, {b, 2}});
      for (int64_t lambda = 2; lambda <= 3; ++lambda) ExpectExact(sequences, lambda);
      if (HasFatalFailure()) return;
    }
  }
}

struct RandomShape {
  Symbol alphabet;
  size_t sequences;
  size_t longest;
  int64_t most_cost;
};

WeightedSequences RandomSequences(std::mt19937_64& random, const RandomShape& shape) {
  WeightedSequences sequences;
  const size_t count = random() % (shape.sequences + 1);
  for (size_t i = 0; i < count; ++i) {
    Sequence sequence(random() % (shape.longest + 1));
    for (Symbol& symbol : sequence) symbol = static_cast<Symbol>(random() % shape.alphabet);
    sequences.Add(sequence,
                  static_cast<int64_t>(random() % static_cast<uint64_t>(shape.most_cost + 1)));
  }
  return sequences;
}

int64_t TotalCost(const WeightedSequences& sequences) {
  return std::accumulate(sequences.costs.begin(), sequences.costs.end(), int64_t{0});
}

TEST(MineMaximal, IsExactOnRandomDatabasesWithRepeatsTiesAndUnequalCosts) {
  const RandomShape shapes[] = {{2, 6, 9, 1},  {3, 8, 9, 3},   {4, 10, 8, 100}, {6, 12, 9, 2},
                                {8, 20, 8, 5}, {12, 30, 7, 1}, {5, 5, 11, 1},   {20, 20, 9, 9}};
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    const WeightedSequences sequences = RandomSequences(random, shapes[seed % std::size(shapes)]);
    const int64_t total = TotalCost(sequences);
    const int64_t lambda = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(total + 2));
    ExpectExact(sequences, std::max<int64_t>(lambda / 2, 2));
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

void ExpectSameForThreadsAndOrder(const WeightedSequences& sequences, int64_t lambda,
                                  std::mt19937_64& random) {
  const std::vector<Pattern> expected = Mine(sequences, lambda, 1);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(Mine(sequences, lambda, 2), expected);
  EXPECT_EQ(Mine(sequences, lambda, 8), expected);
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  WeightedSequences shuffled;
  for (const size_t i : order) shuffled.Add(sequences.at(i), sequences.costs[i]);
  EXPECT_EQ(Mine(shuffled, lambda, 2), expected);
}

TEST(MineMaximal, DoesNotDependOnThreadsOrOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const WeightedSequences sequences = RandomSequences(random, {40, 400, 14, 9});
    ExpectSameForThreadsAndOrder(sequences, std::max<int64_t>(TotalCost(sequences) / 25, 2),
                                 random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// Large enough that reading and merging are shared out, too.
TEST(MineMaximal, DoesNotDependOnThreadsOrOrderOfManySequences) {
  std::mt19937_64 random(1);
  const WeightedSequences sequences = RandomSequences(random, {40, 60'000, 14, 9});
  ASSERT_GT(sequences.size(), 15'000U);
  ExpectSameForThreadsAndOrder(sequences, TotalCost(sequences) / 80, random);
}

TEST(MineMaximal, GivesTheSameForAnyNamesOfSymbols) {
  std::mt19937_64 random(6);
  WeightedSequences sequences;
  while (sequences.size() < 40) sequences = RandomSequences(random, {12, 60, 9, 4});
  WeightedSequences renamed = sequences;
  for (Symbol& symbol : renamed.symbols) symbol = symbol * 300'000'000U + 4'000U;
  std::vector<Pattern> expected = Mine(sequences, 12);
  ASSERT_FALSE(expected.empty());
  for (Pattern& pattern : expected) {
    for (Symbol& symbol : pattern.symbols) symbol = symbol * 300'000'000U + 4'000U;
  }
  std::vector<Pattern> mined = Mine(renamed, 12);
  const auto by_symbols = [](const Pattern& a, const Pattern& b) { return a.symbols < b.symbols; };
  std::sort(expected.begin(), expected.end(), by_symbols);
  std::sort(mined.begin(), mined.end(), by_symbols);
  EXPECT_EQ(mined, expected);
}

TEST(MineMaximal, FindsNothingInNothing) {
  EXPECT_TRUE(Mine({}, 1).empty());
  EXPECT_TRUE(Mine(Make({{{}, 5}}), 1).empty());
  EXPECT_TRUE(Mine(Make({{{1, 2}, 0}}), 1).empty());
}

TEST(MineMaximal, FindsNothingAboveTheTotal) {
  const WeightedSequences sequences = Make({{{1, 2}, 3}, {{1, 3}, 4}});
  EXPECT_TRUE(Mine(sequences, 8).empty());
  EXPECT_EQ(Mine(sequences, 7), (std::vector<Pattern>{{{1}, 7}}));
}

TEST(MineMaximal, TakesALambdaBelowOneAsOne) {
  const WeightedSequences sequences = Make({{{1, 2}, 3}, {{}, 7}, {{9, 9}, 0}});
  const std::vector<Pattern> expected = {{{1, 2}, 3}};
  EXPECT_EQ(Mine(sequences, 1), expected);
  EXPECT_EQ(Mine(sequences, 0), expected);
  EXPECT_EQ(Mine(sequences, -5), expected);
}

TEST(MineMaximal, CountsASequenceOnceHoweverOftenItHoldsThePattern) {
  EXPECT_EQ(Mine(Make({{{1, 1, 1}, 5}, {{1}, 2}}), 6), (std::vector<Pattern>{{{1}, 7}}));
  EXPECT_EQ(Mine(Make({{{1, 1, 1}, 5}, {{1, 1}, 2}}), 6), (std::vector<Pattern>{{{1, 1}, 7}}));
}

TEST(MineMaximal, SortsByCostThenBySymbols) {
  const WeightedSequences sequences = Make({{{3}, 5}, {{1}, 5}, {{2, 9}, 5}, {{4}, 8}});
  EXPECT_EQ(Mine(sequences, 5), (std::vector<Pattern>{{{4}, 8}, {{1}, 5}, {{2, 9}, 5}, {{3}, 5}}));
}

// An extension of a pattern that is not maximal can be maximal: cutting there,
// as the paper reads at first sight, would lose <2, 3>.
TEST(MineMaximal, KeepsPatternsBelowPrefixesThatAreNotMaximal) {
  const WeightedSequences sequences = Make({{{1, 2}, 2}, {{2, 3}, 2}});
  EXPECT_EQ(Mine(sequences, 2), (std::vector<Pattern>{{{1, 2}, 2}, {{2, 3}, 2}}));
}

TEST(MineMaximal, SaysWhenThereAreTooManyPatterns) {
  WeightedSequences sequences;
  for (Symbol symbol = 0; symbol < 100; ++symbol) sequences.Add(std::vector<Symbol>{symbol}, 10);
  for (const size_t jobs : {1U, 2U, 8U}) {
    const MaximalResult result =
        MineMaximal(sequences, {.lambda = 10, .jobs = jobs, .max_patterns = 30});
    EXPECT_TRUE(result.truncated);
    EXPECT_EQ(result.why, "there are more than the 30 patterns asked for");
    ASSERT_EQ(result.patterns.size(), 30U);
    EXPECT_EQ(result.patterns,
              MineMaximal(sequences, {.lambda = 10, .jobs = 1, .max_patterns = 30}).patterns);
  }
  const MaximalResult whole =
      MineMaximal(sequences, {.lambda = 10, .jobs = 1, .max_patterns = 100});
  EXPECT_FALSE(whole.truncated);
  EXPECT_EQ(whole.patterns.size(), 100U);
}

// Long random sequences over few symbols: far more maximal patterns than anyone
// could list.
WeightedSequences Explosive() {
  std::mt19937_64 random(3);
  WeightedSequences sequences;
  for (size_t i = 0; i < 8; ++i) {
    Sequence sequence(40);
    for (Symbol& symbol : sequence) symbol = static_cast<Symbol>(random() % 5);
    sequences.Add(sequence, 1);
  }
  return sequences;
}

void ExpectHonestPart(const WeightedSequences& sequences, int64_t lambda,
                      const MaximalResult& result) {
  for (const Pattern& pattern : result.patterns) {
    EXPECT_GE(pattern.cost, lambda);
    int64_t cost = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto sequence = sequences.at(i);
      if (NaiveContains({sequence.begin(), sequence.end()}, pattern.symbols)) {
        cost += sequences.costs[i];
      }
    }
    ASSERT_EQ(cost, pattern.cost);
    for (const Pattern& other : result.patterns) {
      ASSERT_TRUE(&other == &pattern || !NaiveContains(other.symbols, pattern.symbols));
    }
  }
}

TEST(MineMaximal, StopsWhenTheTimeIsSpent) {
  const WeightedSequences sequences = Explosive();
  const MaximalResult result =
      MineMaximal(sequences, {.lambda = 4, .jobs = 2, .max_time_ns = 100'000'000});
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.why, "the time budget of 100 ms was spent");
  ExpectHonestPart(sequences, 4, result);
}

TEST(MineMaximal, StopsWhenTheMemoryIsSpent) {
  const WeightedSequences sequences = Explosive();
  const MaximalResult result = MineMaximal(
      sequences,
      {.lambda = 4, .jobs = 2, .max_time_ns = 20'000'000'000, .max_memory_bytes = 20'000});
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.why, "the memory budget of 20.0 kB was spent");
}

TEST(MineMaximal, StopsInTheMiddleOfABranchWithTooManyPatterns) {
  const WeightedSequences sequences = Explosive();
  const MaximalResult result = MineMaximal(sequences, {.lambda = 4, .jobs = 1, .max_patterns = 50});
  EXPECT_TRUE(result.truncated);
  EXPECT_LE(result.patterns.size(), 50U);
  ExpectHonestPart(sequences, 4, result);
  EXPECT_EQ(result.patterns,
            MineMaximal(sequences, {.lambda = 4, .jobs = 2, .max_patterns = 50}).patterns);
}

TEST(LambdaForTop, FindsALambdaWithThatManyPatterns) {
  WeightedSequences sequences;
  for (Symbol symbol = 0; symbol < 40; ++symbol) {
    sequences.Add(std::vector<Symbol>{symbol, symbol + 100}, 10 + symbol);
  }
  EXPECT_EQ(LambdaForTop(sequences, 10, {.jobs = 1}), 40);
  EXPECT_EQ(LambdaForTop(sequences, 40, {.jobs = 1}), 10);
  EXPECT_EQ(LambdaForTop(sequences, 41, {.jobs = 1}), 1);
  EXPECT_EQ(LambdaForTop({}, 5, {.jobs = 1}), 1);
}

TEST(LambdaForTop, EndsWhereThereAreEnoughAndOneMoreHasNot) {
  std::mt19937_64 random(11);
  const WeightedSequences sequences = RandomSequences(random, {15, 200, 10, 9});
  const int64_t lambda = LambdaForTop(sequences, 12, {.jobs = 1});
  ASSERT_GT(lambda, 1);
  EXPECT_GE(Mine(sequences, lambda).size(), 12U);
  EXPECT_LT(Mine(sequences, lambda + 1).size(), 12U);
}

}  // namespace
}  // namespace culprit::mine::TEST_FILE
