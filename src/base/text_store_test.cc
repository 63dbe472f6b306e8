// SPDX-License-Identifier: Apache-2.0
#include "base/text_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/large_memory.h"

namespace culprit::TEST_FILE {
namespace {

std::string TextOf(size_t i) { return std::string(i % 300, static_cast<char>('a' + i % 26)); }

// Stores so many, and looks at all of them again.
void Fill(TextStore& store, size_t count, std::vector<std::string_view>& views) {
  for (size_t i = 0; i < count; ++i) views.push_back(store.Store(TextOf(i)));
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(views[i], TextOf(i)) << i;
}

TEST(TextStore, KeepsEveryTextWhereItIs) {
  TextStore store;
  std::vector<std::string_view> views;
  Fill(store, 20'000, views);
  TextStore moved = std::move(store);
  EXPECT_EQ(views[19'999], TextOf(19'999));
  store = std::move(moved);
  for (size_t i = 0; i < views.size(); ++i) ASSERT_EQ(views[i], TextOf(i)) << i;
}

TEST(TextStore, HasRoomForATextThatIsLargerThanAChunk) {
  TextStore store;
  const std::string_view small = store.Store("small");
  const std::string large(100'000'000, 'x');
  EXPECT_EQ(store.Store(large), large);
  EXPECT_EQ(store.Store("after"), "after");
  EXPECT_EQ(small, "small");
  EXPECT_TRUE(store.Store("").empty());
}

TEST(TextStore, LeavesTheHeapBeyondTheBound) {
  const uint64_t before = LargeMemory::mapped_bytes();
  LargeMemory::SetBound(4 * LargeMemory::kLargeBytes);
  {
    TextStore store;
    std::vector<std::string_view> views;
    Fill(store, 200'000, views);  // 30 MB
    EXPECT_GT(LargeMemory::mapped_bytes(), before + 20 * LargeMemory::kLargeBytes);
    EXPECT_LE(LargeMemory::heap_bytes(), 4 * LargeMemory::kLargeBytes);
  }
  LargeMemory::SetBound(0);
  EXPECT_EQ(LargeMemory::mapped_bytes(), before);
}

}  // namespace
}  // namespace culprit::TEST_FILE
