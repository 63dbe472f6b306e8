// SPDX-License-Identifier: Apache-2.0
#include "cluster/linkage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cluster/naive_clustering.h"
#include "cluster/neighbour_chain.h"

namespace culprit::cluster::TEST_FILE {
namespace {

// Reads a matrix; its bounds are looser by what the pair's ranks say.
class MatrixSource final : public PairSource {
 public:
  MatrixSource(const SimilarityMatrix& matrix, Fixed looseness)
      : matrix_(&matrix), looseness_(looseness) {}
  Fixed UpperBound(Rank a, Rank b) override {
    return std::min(kOne, (*matrix_)[a][b] + (a * 7 + b * 3) % 5 * looseness_);
  }
  Fixed Similarity(Rank a, Rank b) override { return (*matrix_)[a][b]; }

 private:
  const SimilarityMatrix* matrix_;
  Fixed looseness_;
};

std::vector<Joined> Joins(const SimilarityMatrix& matrix, const LinkageOptions& options,
                          Fixed looseness) {
  std::vector<SimilarPair> edges;
  for (Rank b = 0; b < matrix.size(); ++b) {
    for (Rank a = 0; a < b; ++a) {
      if (matrix[a][b] >= options.least) edges.push_back({b, a, matrix[a][b]});
    }
  }
  std::mt19937 random(static_cast<uint32_t>(edges.size()));
  std::shuffle(edges.begin(), edges.end(), random);
  return Agglomerate(matrix.size(), edges, options,
                     [&] { return std::make_unique<MatrixSource>(matrix, looseness); });
}

SimilarityMatrix RandomMatrix(std::mt19937& random, size_t count, uint32_t values) {
  SimilarityMatrix matrix(count, std::vector<Fixed>(count, kOne));
  for (Rank b = 0; b < count; ++b) {
    for (Rank a = 0; a < b; ++a) {
      matrix[a][b] = matrix[b][a] = static_cast<Fixed>(random() % values * (kOne / values));
    }
  }
  return matrix;
}

constexpr Linkage kLinkages[] = {Linkage::kAverage, Linkage::kComplete, Linkage::kSingle};

void HoldAgainstNaive(const SimilarityMatrix& matrix, Fixed least, Fixed looseness) {
  for (const Linkage linkage : kLinkages) {
    const std::vector<Joined> expected = NaiveAgglomerate(matrix, linkage, least);
    for (const size_t jobs : {1, 3}) {
      ASSERT_EQ(Joins(matrix, {linkage, least, jobs}, looseness), expected)
          << "linkage " << static_cast<int>(linkage);
    }
  }
}

TEST(LinkageTest, AllMatricesOfFourWithThreeValues) {
  for (uint32_t code = 0; code < 729; ++code) {  // 3^6 pairs
    SimilarityMatrix matrix(4, std::vector<Fixed>(4, kOne));
    uint32_t rest = code;
    for (Rank b = 0; b < 4; ++b) {
      for (Rank a = 0; a < b; ++a, rest /= 3) {
        matrix[a][b] = matrix[b][a] = rest % 3 * (kOne / 3);
      }
    }
    for (const Fixed least : {Fixed{0}, Fixed{1}, kOne / 3, kOne / 2}) {
      HoldAgainstNaive(matrix, least, kOne / 10);
    }
  }
}

TEST(LinkageTest, RandomMatricesWithManyTies) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const size_t count = 2 + random() % 14;
    const uint32_t values = 2 + random() % 6;
    const SimilarityMatrix matrix = RandomMatrix(random, count, values);
    HoldAgainstNaive(matrix, static_cast<Fixed>(random() % kOne), kOne / 20);
  }
}

TEST(LinkageTest, RandomMatricesWithoutTies) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const size_t count = 10 + random() % 25;
    const SimilarityMatrix matrix = RandomMatrix(random, count, 1U << 18);
    for (const Fixed looseness : {Fixed{0}, kOne / 50, kOne}) {
      HoldAgainstNaive(matrix, kOne * (3 + round % 5) / 10, looseness);
    }
  }
}

TEST(LinkageTest, NothingGivesNothing) {
  EXPECT_TRUE(Joins({}, {}, 0).empty());
  EXPECT_TRUE(Joins({{kOne}}, {}, 0).empty());
}

TEST(LinkageTest, MeansAreComparedWithoutRounding) {
  const uint64_t large = uint64_t{1} << 31;
  EXPECT_EQ(CompareMeans({5, 3}, {10, 6}), 0);
  EXPECT_LT(CompareMeans({5, 3}, {11, 6}), 0);
  EXPECT_GT(CompareMeans({large * kOne + 1, large}, {kOne, 1}), 0);
  EXPECT_LT(CompareMeans({large * kOne - 1, large}, {kOne, 1}), 0);
  EXPECT_EQ(CompareMeans({large * kOne, large}, {(large - 1) * kOne, large - 1}), 0);
}

}  // namespace
}  // namespace culprit::cluster::TEST_FILE
