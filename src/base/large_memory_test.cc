// SPDX-License-Identifier: Apache-2.0
#include "base/large_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "base/parallel.h"
#include "base/test_folder.h"

namespace culprit::TEST_FILE {
namespace {

// The bound is the process's: what a test sets is gone after it.
class LargeMemoryTest : public ::testing::Test {
 protected:
  ~LargeMemoryTest() override { LargeMemory::SetBound(0); }
};

constexpr size_t kMany = 3'000'000;

TEST_F(LargeMemoryTest, WithoutABoundEverythingIsOnTheHeap) {
  const uint64_t before = LargeMemory::heap_bytes();
  const LargeVector<uint64_t> numbers(kMany);
  EXPECT_EQ(LargeMemory::heap_bytes(), before + kMany * sizeof(uint64_t));
  EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
}

TEST_F(LargeMemoryTest, WhatDoesNotFitIsInAFileAndTheSame) {
  const uint64_t before = LargeMemory::heap_bytes();
  LargeMemory::SetBound(before + LargeMemory::kLargeBytes * 2);
  {
    LargeVector<uint64_t> numbers;
    for (uint64_t i = 0; i < kMany; ++i) {
      numbers.push_back(i * i);
      if (i % 100'000 == 0) LargeMemory::KeepWithinBound();
    }
    EXPECT_GE(LargeMemory::mapped_bytes(), kMany * sizeof(uint64_t));
    LargeMemory::KeepWithinBound();
    bool same = true;
    for (uint64_t i = 0; i < kMany; ++i) same = same && numbers[i] == i * i;
    EXPECT_TRUE(same);
    LargeVector<uint64_t> copy = numbers;
    const LargeVector<uint64_t> moved = std::move(numbers);
    EXPECT_EQ(copy, moved);
  }
  EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
  EXPECT_EQ(LargeMemory::heap_bytes(), before);
}

TEST_F(LargeMemoryTest, SmallArraysAreNotCounted) {
  LargeMemory::SetBound(1);
  const LargeVector<uint32_t> few(1000, 7);
  EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
}

TEST_F(LargeMemoryTest, ThreadsMayUseItAtOnce) {
  LargeMemory::SetBound(1);
  ParallelFor(16, 4, [](size_t i) {
    LargeVector<uint32_t> numbers;
    for (uint32_t n = 0; n < 600'000; ++n) numbers.push_back(n + static_cast<uint32_t>(i));
    LargeMemory::KeepWithinBound();
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), uint64_t{0}),
              uint64_t{599'999} * 300'000 + uint64_t{600'000} * i);
  });
  EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
}

// Last: why it could not stays for the life of the process.
TEST_F(LargeMemoryTest, WhereNothingCanBeWrittenItIsOnTheHeapAndSaysWhy) {
  const TestFolder folder;
  const char* old = std::getenv("TMPDIR");
  const std::string kept = old == nullptr ? "" : old;
  setenv("TMPDIR", (folder / "nowhere").c_str(), 1);
  LargeMemory::SetBound(1);
  {
    const LargeVector<uint64_t> numbers(kMany, 5);
    EXPECT_EQ(numbers[kMany - 1], 5U);
    EXPECT_EQ(LargeMemory::mapped_bytes(), 0U);
    EXPECT_NE(LargeMemory::why_not_mapped().find("nowhere"), std::string::npos);
  }
  if (old == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace culprit::TEST_FILE
