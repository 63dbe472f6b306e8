// SPDX-License-Identifier: Apache-2.0
#include "cluster/similar_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/naive_clustering.h"
#include "cluster/random_patterns.h"

namespace culprit::cluster::TEST_FILE {
namespace {

// The formulas of docs/clustering.md in floating point, with the leaf weighting.
double RealSimilarity(const PatternSymbols& a, const PatternSymbols& b, const SymbolWords& words,
                      const NgramCounts& counts, bool to_leaf) {
  const PatternSymbols& left = std::min(a, b);
  const PatternSymbols& right = std::max(a, b);
  const std::vector<Step> steps = NaiveSteps(left, right, words);
  const auto share = [](Fixed fixed) { return fixed / static_cast<double>(kOne); };
  const auto weight = [&](const PatternSymbols& p, size_t i, bool caller_too, bool callee_too) {
    const double forward = caller_too ? share(counts.ForwardPair(p[i - 1], p[i])) : 1;
    const double backward = callee_too ? share(counts.BackwardPair(p[i], p[i + 1])) : 1;
    const double factor = to_leaf ? std::exp(-0.2 * static_cast<double>(p.size() - 1 - i)) : 1;
    return share(counts.Uni(p[i])) * (forward + backward) / 2 * factor;
  };
  double matched = 0;
  double all = 0;
  size_t i = left.size();
  size_t j = right.size();
  for (size_t n = 0; n < steps.size(); ++n) {
    const bool callee_too = n > 0 && steps[n - 1] == steps[n];
    const bool caller_too = n + 1 < steps.size() && steps[n + 1] == steps[n];
    double l = 0;
    double r = 0;
    if (steps[n] != Step::kInsertion) l = weight(left, --i, caller_too, callee_too);
    if (steps[n] != Step::kDeletion) r = weight(right, --j, caller_too, callee_too);
    double w = l + r;
    if (steps[n] == Step::kMatch || steps[n] == Step::kSubstitution) w /= 2;
    if (steps[n] == Step::kSubstitution) w *= share(words.Substitution(left[i], right[j]));
    if (steps[n] == Step::kMatch) matched += w;
    all += w;
  }
  return all < 1e-4 ? -1 : matched / all;
}

SimilarityMatrix NaiveMatrix(const RandomPatterns& made, const WeightedPatterns& weighted) {
  SimilarityMatrix matrix(weighted.size(), std::vector<Fixed>(weighted.size(), kOne));
  for (Rank a = 0; a < weighted.size(); ++a) {
    for (Rank b = 0; b < a; ++b) {
      const PatternSymbols& left = made.patterns[weighted.IndexOf(a)];
      const PatternSymbols& right = made.patterns[weighted.IndexOf(b)];
      matrix[a][b] = matrix[b][a] = NaiveSimilarity(left, right, made.words, made.counts);
    }
  }
  return matrix;
}

RandomPatternOptions OptionsOf(uint32_t seed) {
  RandomPatternOptions options;
  options.seed = seed;
  options.patterns = 30;
  options.symbols = 4 + seed % 23;
  options.words = 2 + seed % 9;
  options.longest = 3 + seed % 14;
  return options;
}

TEST(SimilarPairsTest, EveryPairIsAsTheTextDefinesAndWithinItsBound) {
  size_t pairs = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    const RandomPatterns made = MakeRandomPatterns(OptionsOf(seed));
    const WeightedPatterns weighted(made.patterns, made.words, made.counts, false);
    const SimilarityMatrix expected = NaiveMatrix(made, weighted);
    const SimilarPairs similar(weighted, kOne / 2);
    const std::unique_ptr<PairSource> source = similar.MakeSource();
    for (Rank a = 0; a < weighted.size(); ++a) {
      for (Rank b = 0; b < weighted.size(); ++b) {
        if (a == b) continue;
        const Fixed similarity = source->Similarity(a, b);
        ASSERT_EQ(similarity, expected[a][b]) << "seed " << seed;
        ASSERT_LE(similarity, source->UpperBound(a, b)) << "seed " << seed;
        ++pairs;
      }
    }
  }
  EXPECT_EQ(pairs, 150U * 30 * 29);
}

TEST(SimilarPairsTest, NoPairThatReachesTheLeastIsLeftOut) {
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    const RandomPatterns made = MakeRandomPatterns(OptionsOf(seed));
    const WeightedPatterns weighted(made.patterns, made.words, made.counts, false);
    const SimilarityMatrix expected = NaiveMatrix(made, weighted);
    for (const Fixed least :
         {Fixed{0}, Fixed{1}, kOne / 3, kOne * 45 / 100, kOne / 2, kOne * 7 / 10, kOne - 1, kOne}) {
      std::map<std::pair<Rank, Rank>, Fixed> found;
      for (const SimilarPair& pair : SimilarPairs(weighted, least).Find(1)) {
        ASSERT_TRUE(found.try_emplace({pair.a, pair.b}, pair.similarity).second);
      }
      std::map<std::pair<Rank, Rank>, Fixed> reaching;
      for (Rank b = 0; b < weighted.size(); ++b) {
        for (Rank a = 0; a < b; ++a) {
          if (expected[a][b] >= least) reaching[{a, b}] = expected[a][b];
        }
      }
      ASSERT_EQ(found, reaching) << "seed " << seed << ", least " << least;
    }
  }
}

TEST(SimilarPairsTest, TheBoundLeavesOutMostPairsOfUnrelatedPatterns) {
  RandomPatternOptions options;
  options.patterns = 300;
  options.symbols = 400;
  options.words = 26;
  options.longest = 20;
  const RandomPatterns made = MakeRandomPatterns(options);
  const WeightedPatterns weighted(made.patterns, made.words, made.counts, false);
  const MatchGains gains(weighted);
  const SubstitutionCosts costs(weighted);
  const CandidateIndex index(weighted, gains, costs, kOne * 45 / 100);
  std::vector<uint32_t> sums;
  std::vector<Candidate> candidates;
  size_t found = 0;
  for (Rank rank = 0; rank < weighted.size(); ++rank) {
    index.CandidatesBelow(rank, sums, candidates);
    found += candidates.size();
  }
  EXPECT_LT(found, 300U * 299 / 2 / 4);
}

TEST(SimilarPairsTest, LeafWeightingFollowsItsFormulaAndItsBoundsHold) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const RandomPatterns made = MakeRandomPatterns(OptionsOf(seed));
    for (const bool to_leaf : {false, true}) {
      const WeightedPatterns weighted(made.patterns, made.words, made.counts, to_leaf);
      const SimilarPairs similar(weighted, kOne / 2);
      const std::unique_ptr<PairSource> source = similar.MakeSource();
      size_t reaching = 0;
      for (Rank a = 0; a < weighted.size(); ++a) {
        for (Rank b = 0; b < a; ++b) {
          const Fixed similarity = source->Similarity(a, b);
          ASSERT_LE(similarity, source->UpperBound(a, b));
          if (similarity >= kOne / 2) ++reaching;
          const double real =
              RealSimilarity(made.patterns[weighted.IndexOf(a)], made.patterns[weighted.IndexOf(b)],
                             made.words, made.counts, to_leaf);
          if (real >= 0) {
            ASSERT_NEAR(similarity / static_cast<double>(kOne), real, 0.02);
          }
        }
      }
      EXPECT_EQ(similar.Find(1).size(), reaching);
    }
  }
}

TEST(SimilarPairsTest, CostsWithoutATableAreTheSame) {
  const RandomPatterns made = MakeRandomPatterns(OptionsOf(20));
  const WeightedPatterns weighted(made.patterns, made.words, made.counts, false);
  const SubstitutionCosts with_table(weighted);
  const SubstitutionCosts without(weighted, 0);
  for (uint32_t a = 0; a < weighted.classes(); ++a) {
    Fixed cheapest = kOne;
    for (uint32_t b = 0; b < weighted.classes(); ++b) {
      EXPECT_EQ(with_table.Cost(a, b), without.Cost(a, b));
      EXPECT_EQ(with_table.Cost(a, b) == 0, a == b);
      if (a != b) cheapest = std::min(cheapest, with_table.Cost(a, b));
    }
    EXPECT_EQ(with_table.Cheapest(a), cheapest);
    EXPECT_EQ(without.Cheapest(a), cheapest);
  }
}

// Weights of 0 leave 0/0: identical patterns are 1, others go by lengths.
TEST(SimilarPairsTest, WithoutWeightsLengthsDecide) {
  SymbolWords words;
  for (int i = 0; i < 4; ++i) words.AddUnnamed();
  NgramCounts counts;
  counts.AddStack(PatternSymbols{0, 1, 2, 3}, 5);  // every stack has every frame
  const std::vector<PatternSymbols> patterns = {{}, {}, {0, 1}, {0, 1}, {0, 1, 2}, {3}};
  const WeightedPatterns weighted(patterns, words, counts, false);
  const SimilarPairs similar(weighted, kOne / 2);
  const std::unique_ptr<PairSource> source = similar.MakeSource();
  ASSERT_EQ(weighted.IndexOf(4), 4U);  // given in canonical order
  EXPECT_EQ(source->Similarity(0, 1), kOne);
  EXPECT_EQ(source->Similarity(2, 3), kOne);
  EXPECT_EQ(source->Similarity(2, 4), uint64_t{kOne} * 2 / 3);
  EXPECT_EQ(source->Similarity(4, 5), 0U);
  EXPECT_EQ(source->Similarity(0, 5), 0U);
  EXPECT_EQ(similar.Find(1).size(), 4U);
}

TEST(SimilarPairsTest, OnlyTheLeafMostFramesOfAVeryLongPatternCount) {
  SymbolWords words;
  for (int i = 0; i < 3; ++i) words.AddUnnamed();
  NgramCounts counts;
  PatternSymbols first(kMaxFrames, 1);
  PatternSymbols second = first;
  first.insert(first.begin(), 10, 0);
  second.insert(second.begin(), 500, 2);
  const std::vector<PatternSymbols> patterns = {first, second};
  const WeightedPatterns weighted(patterns, words, counts, false);
  EXPECT_EQ(SimilarPairs(weighted, kOne).Find(1).size(), 1U);
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
