// SPDX-License-Identifier: Apache-2.0
#include "guard/path_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace culprit::guard::TEST_FILE {
namespace {

size_t NaiveLcs(const FunctionPath& a, const FunctionPath& b) {
  std::vector<std::vector<size_t>> length(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      length[i][j] = a[i - 1] == b[j - 1] ? length[i - 1][j - 1] + 1
                                          : std::max(length[i - 1][j], length[i][j - 1]);
    }
  }
  return length[a.size()][b.size()];
}

TEST(PathDistance, LcsOfAllSmallPathsIsTheNaiveOne) {
  // All paths of up to four calls over three functions.
  std::vector<FunctionPath> paths = {{}};
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].size() == 4) continue;
    for (uint32_t function = 0; function < 3; ++function) {
      FunctionPath longer = paths[i];
      longer.push_back(function);
      paths.push_back(longer);
    }
  }
  for (const FunctionPath& a : paths) {
    for (const FunctionPath& b : paths) {
      ASSERT_EQ(LongestCommonSubsequence(a, b), NaiveLcs(a, b));
    }
  }
}

TEST(PathDistance, LcsOfLongRandomPathsIsTheNaiveOne) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    FunctionPath a(random() % 200);
    FunctionPath b(random() % 200);
    const uint64_t functions = 1 + random() % 12;
    for (uint32_t& function : a) function = static_cast<uint32_t>(random() % functions);
    for (uint32_t& function : b) function = static_cast<uint32_t>(random() % functions);
    ASSERT_EQ(LongestCommonSubsequence(a, b), NaiveLcs(a, b));
  }
}

TEST(PathDistance, IsThatOfEquationOne) {
  const FunctionPath a = {1, 2, 3, 4};
  const FunctionPath b = {1, 3, 5};
  EXPECT_EQ(PathSimilarity(a, b), cluster::kOne / 2);  // (4 - 2) / 4
  EXPECT_EQ(PathSimilarity(a, a), cluster::kOne);
  EXPECT_EQ(PathSimilarity(a, {}), 0U);
}

}  // namespace
}  // namespace culprit::guard::TEST_FILE
