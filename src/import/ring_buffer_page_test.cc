// SPDX-License-Identifier: Apache-2.0
#include "import/ring_buffer_page.h"

#include <gtest/gtest.h>

#include <vector>

#include "import/ring_buffer_sample.h"

namespace culprit::import_::TEST_FILE {
namespace {

std::vector<uint64_t> Times(const PageLayout& layout, std::string_view page) {
  std::vector<uint64_t> times;
  PageReader reader(layout, page);
  for (PageEvent event; reader.Next(event);) times.push_back(event.time);
  return times;
}

TEST(RingBufferPage, ReadsEveryKindOfEntryInBothByteOrders) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    for (const size_t long_bytes : {4, 8}) {
      RingSample sample(order, long_bytes);
      sample.Event(5, "abcd");                               // 1005
      sample.Raw(sample.Head(30, 1) + sample.Number(1, 4));  // + 2^27 + 1
      sample.Event(4, std::string(200, 'x'));                // a length of its own
      sample.Raw(sample.Head(29, 6) + sample.Number(8, 4) + sample.Number(0, 4));
      sample.Event(0, "efgh");
      sample.Raw(sample.Head(31, 7) + sample.Number(3, 4));  // 3 * 2^27 + 7
      sample.Event(1, "ijkl");
      sample.Raw(sample.Head(29, 0));
      PageLayout layout{.order = order};
      layout.ReadHeaderPage(sample.HeaderPage());
      EXPECT_EQ(layout.commit_bytes, long_bytes);
      EXPECT_EQ(layout.page_bytes, RingSample::kPageBytes);
      const std::string page = sample.Page(1000);
      const uint64_t far = uint64_t{1} << 27;
      EXPECT_EQ(Times(layout, page),
                (std::vector<uint64_t>{1005, 1010 + far, 1016 + far, 3 * far + 8}));
      EXPECT_FALSE(PageReader(layout, page).damaged());
    }
  }
}

TEST(RingBufferPage, DataOfALongEventBeginsAfterItsLength) {
  RingSample sample;
  sample.Event(0, std::string(120, 'x'));
  const std::string page = sample.Page(7);
  PageReader reader({}, page);
  PageEvent event;
  ASSERT_TRUE(reader.Next(event));
  EXPECT_EQ(event.data, std::string(120, 'x'));
  EXPECT_EQ(page.substr(event.offset, 3), "xxx");
}

TEST(RingBufferPage, TellsLostEvents) {
  RingSample sample;
  sample.Event(0, "abcd");
  const std::string unknown = sample.Page(0, uint64_t{1} << 31);
  EXPECT_TRUE(PageReader({}, unknown).lost());
  EXPECT_EQ(PageReader({}, unknown).lost_count(), 0u);
  sample.Event(0, "abcd");
  std::string counted = sample.Page(0, uint64_t{3} << 30);
  counted.replace(16 + 8, 8, sample.Number(42, 8));
  EXPECT_EQ(PageReader({}, counted).lost_count(), 42u);
}

TEST(RingBufferPage, CutAnywhereGivesAPrefixAndSaysSo) {
  RingSample sample;
  for (uint32_t i = 0; i < 20; ++i) sample.Event(i, std::string(4 + 8 * i, 'x'));
  const std::string page = sample.Page(100);
  const std::vector<uint64_t> whole = Times({}, page);
  ASSERT_EQ(whole.size(), 20u);
  for (size_t size = 0; size < page.size(); ++size) {
    const std::vector<uint64_t> part = Times({}, std::string_view(page).substr(0, size));
    ASSERT_LE(part.size(), whole.size());
    ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
  }
  PageReader reader({}, std::string_view(page).substr(0, 100));
  EXPECT_TRUE(reader.damaged());
}

TEST(RingBufferPage, ImpossibleLengthsEndThePage) {
  RingSample sample;
  sample.Raw(sample.Head(0, 1) + sample.Number(2, 4) + "rest");
  const std::string page = sample.Page(0);
  PageReader reader({}, page);
  PageEvent event;
  EXPECT_FALSE(reader.Next(event));
  EXPECT_TRUE(reader.damaged());
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
