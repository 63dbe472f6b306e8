// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace culprit::guard::runtime::TEST_FILE {
namespace {

struct Ring {
  wire::RingHeader header = {};
  std::unique_ptr<wire::Cell[]> cells = std::make_unique<wire::Cell[]>(wire::kRingCells);

  uint64_t there = wire::kRingCells;

  bool Write(uint64_t value) {
    const auto reach = [this](uint64_t cell) { return cell < there; };
    return WriteRecord(header, cells.get(), reach, [&](wire::Cell& cell) {
      cell.kind = static_cast<uint32_t>(wire::RecordKind::kSamples);
      cell.count = 1;
      cell.samples[0].wall_ns = value;
    });
  }
  // As culprit reads: the next cell if it is full.
  bool Read(uint64_t& value) {
    const uint64_t number = header.tail.load();
    wire::Cell& cell = cells[number % wire::kRingCells];
    const uint64_t turn = 2 * (number / wire::kRingCells);
    if (cell.turn.load(std::memory_order_acquire) != turn + 1) return false;
    value = cell.samples[0].wall_ns;
    cell.turn.store(turn + 2, std::memory_order_release);
    header.tail.store(number + 1);
    return true;
  }
};

TEST(Ring, WritesNoCellThatCannotBeHad) {
  Ring ring;
  ring.there = 2;
  EXPECT_TRUE(ring.Write(1));
  EXPECT_TRUE(ring.Write(2));
  EXPECT_FALSE(ring.Write(3));
  EXPECT_EQ(ring.header.head.load(), 2u);
  ring.there = wire::kRingCells;
  EXPECT_TRUE(ring.Write(3));
  uint64_t value = 0;
  for (const uint64_t expected : {1, 2, 3}) {
    ASSERT_TRUE(ring.Read(value));
    EXPECT_EQ(value, expected);
  }
}

TEST(Ring, GivesUpWhenFullAndGoesOnWhenRead) {
  Ring ring;
  for (uint64_t i = 0; i < wire::kRingCells; ++i) EXPECT_TRUE(ring.Write(i));
  EXPECT_FALSE(ring.Write(1));
  uint64_t value = 0;
  EXPECT_TRUE(ring.Read(value));
  EXPECT_EQ(value, 0u);
  EXPECT_TRUE(ring.Write(5));
  EXPECT_FALSE(ring.Write(6));
  for (uint64_t i = 1; i < wire::kRingCells; ++i) {
    EXPECT_TRUE(ring.Read(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_TRUE(ring.Read(value));
  EXPECT_EQ(value, 5u);
  EXPECT_FALSE(ring.Read(value));
}

TEST(Ring, ManyWritersLoseNothingThatTheyWrote) {
  Ring ring;
  constexpr uint64_t kEach = 20'000;
  constexpr uint64_t kWriters = 4;
  std::atomic<uint64_t> written_sum = 0;
  std::atomic<uint64_t> running = kWriters;
  std::vector<std::thread> writers;
  for (uint64_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t value = w * kEach + i + 1;
        if (ring.Write(value)) written_sum += value;
      }
      --running;
    });
  }
  uint64_t read_sum = 0;
  uint64_t value = 0;
  while (running > 0 || ring.header.tail.load() != ring.header.head.load()) {
    if (ring.Read(value)) read_sum += value;
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read_sum, written_sum.load());
  EXPECT_GT(read_sum, 0u);
}

}  // namespace
}  // namespace culprit::guard::runtime::TEST_FILE
