// SPDX-License-Identifier: Apache-2.0
#include "base/ones.h"

#include <gtest/gtest.h>

#include <random>

namespace culprit::TEST_FILE {
namespace {

TEST(CountOnes, IsThatOfTheLibrary) {
  EXPECT_EQ(CountOnes(0), 0U);
  EXPECT_EQ(CountOnes(UINT64_MAX), 64U);
  for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(CountOnes(uint64_t{1} << bit), 1U);
  std::mt19937_64 random(64);
  for (int round = 0; round < 10'000; ++round) {
    const uint64_t word = random() & random();
    EXPECT_EQ(CountOnes(word), static_cast<uint64_t>(std::popcount(word))) << word;
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
