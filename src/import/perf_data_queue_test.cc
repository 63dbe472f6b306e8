// SPDX-License-Identifier: Apache-2.0
#include "import/perf_data_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace culprit::import_::TEST_FILE {
namespace {

struct Taken {
  uint64_t time = 0;
  uint64_t number = 0;  // how many were added before it

  bool operator==(const Taken&) const = default;
};

// A queue beside a list that is sorted anew each time; every record's bytes
// begin with its number, unless it has none.
class QueueBesideList {
 public:
  void Add(uint64_t time, size_t size) {
    std::string body(size, static_cast<char>('a' + next_ % 26));
    if (size >= sizeof(next_)) std::memcpy(body.data(), &next_, sizeof(next_));
    const PerfRecordView record = {
        .type = 9, .misc = static_cast<uint16_t>(size), .body = body, .offset = next_};
    ASSERT_TRUE(queue_.Add(time, record).ok());
    waiting_.push_back({time, next_++});
    newest_ = std::max(newest_, time);
  }
  void EndRound() {
    ASSERT_TRUE(queue_.EndRound().ok());
    Expect(limit_);
    limit_ = newest_;
  }
  void Finish() {
    ASSERT_TRUE(queue_.Finish().ok());
    Expect(UINT64_MAX);
  }

  const std::vector<Taken>& taken() const { return taken_; }

 private:
  void Expect(uint64_t limit) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Taken& a, const Taken& b) { return a.time < b.time; });
    const auto end = std::partition_point(waiting_.begin(), waiting_.end(),
                                          [&](const Taken& t) { return t.time <= limit; });
    expected_.insert(expected_.end(), waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
    ASSERT_EQ(taken_, expected_);
  }
  Status Take(uint64_t time, const PerfRecordView& record) {
    taken_.push_back({time, record.offset});
    EXPECT_EQ(record.body.size(), record.misc);
    uint64_t number = record.offset;
    if (record.body.size() >= sizeof(number)) {
      std::memcpy(&number, record.body.data(), sizeof(number));
      const auto filler = static_cast<char>('a' + record.offset % 26);
      if (record.body.size() > sizeof(number)) {
        EXPECT_EQ(record.body.back(), filler);
      }
    }
    EXPECT_EQ(number, record.offset);
    return {};
  }

  PerfDataQueue queue_{
      [this](uint64_t time, const PerfRecordView& record) { return Take(time, record); }};
  std::vector<Taken> waiting_;
  std::vector<Taken> expected_;
  std::vector<Taken> taken_;
  uint64_t next_ = 0;
  uint64_t newest_ = 0;
  uint64_t limit_ = 0;
};

TEST(PerfDataQueueTest, OrderIsThatOfAStableSort) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    QueueBesideList queue;
    for (uint64_t round = 0; round < 12; ++round) {
      for (uint64_t cpu = 0; cpu < 1 + seed % 5; ++cpu) {
        // Runs in order of time, with ties, now and then broken.
        uint64_t time = 100 * round + random() % 50;
        for (uint32_t i = random() % 60; i > 0; --i) {
          time = random() % 16 == 0 ? time - std::min<uint64_t>(time, random() % 20)
                                    : time + random() % 4;
          queue.Add(time, random() % 4 == 0 ? 0 : random() % 400);
        }
      }
      queue.EndRound();
    }
    queue.Finish();
  }
}

TEST(PerfDataQueueTest, WhatStaysInAFullQueueKeepsItsBytes) {
  QueueBesideList queue;
  // Every fourth record is far in the future and stays, spread over all segments.
  const uint64_t count = kMaxQueueBytes / 60'000 * 3 / 2;
  for (uint64_t i = 0; i < count; ++i) {
    queue.Add(i % 4 == 0 ? i + 1'000'000 : i, i % 100 == 0 ? 0 : 60'000);
  }
  EXPECT_FALSE(queue.taken().empty());
  queue.Finish();
}

TEST(PerfDataQueueTest, ManySmallRecordsAreBoundedToo) {
  uint64_t taken = 0;
  uint64_t last = 0;
  PerfDataQueue queue([&](uint64_t time, const PerfRecordView&) -> Status {
    EXPECT_LE(last, time);
    last = time;
    ++taken;
    return {};
  });
  for (uint64_t i = 0; i < kMaxQueueRecords + 2; ++i) {
    ASSERT_TRUE(queue.Add(i ^ 1, {.body = "12345678"}).ok());
  }
  EXPECT_GE(taken, kMaxQueueRecords / 2);
  ASSERT_TRUE(queue.Finish().ok());
  EXPECT_EQ(taken, kMaxQueueRecords + 2);
}

}  // namespace
}  // namespace culprit::import_::TEST_FILE
