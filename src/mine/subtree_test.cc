// SPDX-License-Identifier: Apache-2.0
#include "mine/subtree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "mine/naive_maximal.h"

namespace culprit::mine::TEST_FILE {
namespace {

struct Shape {
  Symbol alphabet;
  size_t sequences;
  size_t longest;
  int64_t most_cost;
};

WeightedSequences RandomOnes(uint64_t seed, const Shape& shape) {
  std::mt19937_64 random(seed);
  WeightedSequences made;
  const size_t count = random() % (shape.sequences + 1);
  for (size_t i = 0; i < count; ++i) {
    std::vector<Symbol> sequence(random() % (shape.longest + 1));
    for (Symbol& symbol : sequence) symbol = static_cast<Symbol>(random() % shape.alphabet);
    made.Add(sequence, static_cast<int64_t>(random() % (shape.most_cost + 1)));
  }
  return made;
}

int64_t HalfOfCosts(const WeightedSequences& sequences, uint64_t seed) {
  const int64_t all = std::accumulate(sequences.costs.begin(), sequences.costs.end(), int64_t{0});
  return 2 + static_cast<int64_t>(seed * 7919 % static_cast<uint64_t>(all + 2)) / 2;
}

std::vector<Pattern> InPieces(const WeightedSequences& sequences, int64_t lambda, uint64_t pieces,
                              size_t jobs = 1) {
  const MaximalResult result = MineInPieces(sequences, {.lambda = lambda, .jobs = jobs}, pieces);
  EXPECT_FALSE(result.truncated);
  return result.patterns;
}

TEST(MineSubtree, PiecesMergedAreThePatternsByDefinition) {
  const Shape shapes[] = {{2, 6, 9, 1},  {3, 8, 9, 3},   {4, 10, 8, 100}, {6, 12, 9, 2},
                          {8, 20, 8, 5}, {12, 30, 7, 1}, {20, 20, 9, 9},  {60, 30, 9, 3}};
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const WeightedSequences sequences = RandomOnes(seed, shapes[seed % std::size(shapes)]);
    const int64_t lambda = HalfOfCosts(sequences, seed);
    const std::vector<Pattern> expected = NaiveMaximal(sequences, lambda);
    for (const uint64_t pieces : {2, 3, 7, 100}) {
      ASSERT_EQ(InPieces(sequences, lambda, pieces), expected)
          << "seed " << seed << ", " << pieces << " pieces";
    }
  }
}

TEST(MineSubtree, PiecesMergedAreThoseOfOneSearchInLargerData) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const WeightedSequences sequences = RandomOnes(seed, {300, 4000, 24, 50});
    const int64_t all = std::accumulate(sequences.costs.begin(), sequences.costs.end(), int64_t{0});
    const int64_t lambda = std::max<int64_t>(all / 400, 1);
    const std::vector<Pattern> expected =
        MineMaximal(sequences, {.lambda = lambda, .jobs = 2}).patterns;
    for (const uint64_t pieces : {2, 5, 64}) {
      EXPECT_EQ(InPieces(sequences, lambda, pieces, 1 + pieces % 2), expected) << pieces;
    }
  }
}

// Runs of pieces may be merged before: what hosts do.
TEST(MineSubtree, MergingInPartsChangesNothing) {
  constexpr uint64_t kPieces = 9;
  const WeightedSequences sequences = RandomOnes(5, {40, 400, 12, 9});
  const int64_t lambda = 20;
  const std::vector<Pattern> expected = MineMaximal(sequences, {.lambda = lambda}).patterns;
  ASSERT_GT(expected.size(), kPieces);
  Subtree whole;
  for (uint64_t part = 0; part < 3; ++part) {
    Subtree some;
    for (uint64_t i = part * 3; i < part * 3 + 3; ++i) {
      MergeSubtree(MineSubtree(sequences, {i, kPieces}, {.lambda = lambda}), 0, some);
    }
    MergeSubtree(std::move(some), 0, whole);
  }
  EXPECT_EQ(whole.patterns, expected);
}

TEST(MineSubtree, PiecesHaveAboutTheSameToDo) {
  constexpr uint64_t kPieces = 4;
  const WeightedSequences sequences = RandomOnes(11, {200, 3000, 20, 50});
  const int64_t all = std::accumulate(sequences.costs.begin(), sequences.costs.end(), int64_t{0});
  std::vector<size_t> items;
  for (uint64_t i = 0; i < kPieces; ++i) {
    const Prepared prepared = Prepare(sequences, std::max<int64_t>(all / 300, 1), 1, {i, kPieces});
    items.push_back(prepared.items.end - prepared.items.first);
  }
  EXPECT_EQ(std::accumulate(items.begin(), items.end(), size_t{0}), 200U);
  EXPECT_GT(*std::ranges::min_element(items), 10U);
}

TEST(MineSubtree, ABoundThatIsSpentGivesTheAnswerOfOneSearch) {
  const WeightedSequences sequences = RandomOnes(4, {40, 400, 12, 9});
  const MaximalOptions options{.lambda = 40, .max_patterns = 5};
  const MaximalResult whole = MineMaximal(sequences, options);
  ASSERT_TRUE(whole.truncated);
  const MaximalResult pieces = MineInPieces(sequences, options, 6);
  EXPECT_EQ(pieces.patterns, whole.patterns);
  EXPECT_EQ(pieces.why, whole.why);
}

TEST(MineSubtree, OfNothingThereIsNothing) {
  EXPECT_TRUE(InPieces({}, 1, 3).empty());
  WeightedSequences cheap;
  cheap.Add(std::vector<Symbol>{1, 2, 3}, 4);
  EXPECT_TRUE(InPieces(cheap, 5, 3).empty());
  EXPECT_EQ(InPieces(cheap, 4, 3).size(), 1U);
}

}  // namespace
}  // namespace culprit::mine::TEST_FILE
