// SPDX-License-Identifier: Apache-2.0
#include "corpus/call_forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "corpus/random_forest.h"

namespace culprit::corpus::TEST_FILE {
namespace {

// A stack as what it is ordered by.
std::vector<std::pair<uint64_t, std::string_view>> PathOf(const CallForest& forest, uint32_t s) {
  std::vector<std::pair<uint64_t, std::string_view>> path;
  for (; s != kNoCall; s = forest.parents[s]) {
    path.emplace_back(forest.hashes[forest.symbols[s]], forest.names[forest.symbols[s]]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

TEST(CallForest, CanonicalOrderIsThatOfPaths) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const RandomForest forest(random, i % 30 + 1, i * 5);
    std::vector<uint32_t> expected(forest.get().size());
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
      return PathOf(forest.get(), a) < PathOf(forest.get(), b);
    });
    EXPECT_EQ(CanonicalOrder(forest.get()), expected) << i;
  }
}

// Hashes that fall on few values, as somebody might choose names to make them.
TEST(CallForest, NamesDecideWhereHashesAreEqual) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50; ++i) {
    const RandomForest made(random, 20, 200);
    CallForest forest = made.get();
    for (uint64_t& hash : forest.hashes) hash %= i % 3 + 1;
    std::vector<uint32_t> expected(forest.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(expected.begin(), expected.end(),
              [&](uint32_t a, uint32_t b) { return PathOf(forest, a) < PathOf(forest, b); });
    EXPECT_EQ(CanonicalOrder(forest), expected) << i;
  }
}

TEST(CallForest, WhatWasWrittenInCanonicalOrderIsCanonical) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) {
    const RandomForest forest(random, i % 30 + 1, i * 5);
    const std::string bytes = forest.Canonical({"other", "names"});
    ByteReader in(bytes);
    CallForest read;
    size_t frames = 0;
    ASSERT_TRUE(ReadForest(in, read, frames));
    EXPECT_EQ(in.remaining(), 0U);
    EXPECT_TRUE(IsCanonical(read, frames)) << i;
    EXPECT_EQ(read.names.size(), frames + 2);
    EXPECT_EQ(read.names.back(), "names");
    // The same stacks, whatever their order was.
    std::vector<std::vector<std::pair<uint64_t, std::string_view>>> paths;
    for (const uint32_t s : CanonicalOrder(forest.get())) paths.push_back(PathOf(forest.get(), s));
    ASSERT_EQ(read.size(), paths.size());
    for (uint32_t s = 0; s < read.size(); ++s) EXPECT_EQ(PathOf(read, s), paths[s]);
  }
}

TEST(CallForest, AnyOtherOrderIsNotCanonical) {
  std::mt19937_64 random(4);
  int others = 0;
  for (int i = 0; i < 100; ++i) {
    const RandomForest forest(random, 10, 60);
    std::vector<uint32_t> order(forest.get().size());
    std::iota(order.begin(), order.end(), 0);
    if (order == CanonicalOrder(forest.get())) continue;
    ByteWriter out;
    WriteForest(forest.get(), order, {}, out);
    ByteReader in(out.bytes());
    CallForest read;
    size_t frames = 0;
    ASSERT_TRUE(ReadForest(in, read, frames));
    EXPECT_FALSE(IsCanonical(read, frames)) << i;
    ++others;
  }
  EXPECT_GT(others, 90);
}

TEST(CallForest, ChangedBytesGiveAForestOrNone) {
  std::mt19937_64 random(5);
  const std::string bytes = RandomForest(random, 12, 60).Canonical({"x"});
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      ByteReader in(changed);
      CallForest read;
      size_t frames = 0;
      if (!ReadForest(in, read, frames)) continue;
      for (uint32_t s = 0; s < read.size(); ++s) {
        EXPECT_LT(read.symbols[s], frames);
        EXPECT_TRUE(read.parents[s] == kNoCall || read.parents[s] < s);
      }
    }
  }
}

}  // namespace
}  // namespace culprit::corpus::TEST_FILE
