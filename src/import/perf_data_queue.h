// SPDX-License-Identifier: Apache-2.0
//
// PerfDataQueue: puts records into order of time. perf writes the buffers of
// all CPUs in rounds and promises that nothing written after the end of a round
// is older than the newest record of the round before. Files without rounds are
// ordered within the queue's bound: when it is full, the older half leaves. A
// record that is older than one already handed out comes late, and whoever
// takes it counts that. Ties keep the order of the file.
//
// Records are copied once, into segments that are used again. A round is one
// run in order of time for each CPU, and merging runs costs a comparison a
// record and doubling of their number.
//
// Memory: at most kMaxQueueBytes of records and kMaxQueueRecords entries, three
// times over while they are put into order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "import/perf_data_layout.h"

namespace culprit::import_ {

inline constexpr size_t kMaxQueueBytes = size_t{192} << 20;
inline constexpr size_t kMaxQueueRecords = size_t{1} << 20;

class PerfDataQueue {
 public:
  using Visitor = std::function<Status(uint64_t time, const PerfRecordView&)>;

  explicit PerfDataQueue(Visitor visitor) : visitor_(std::move(visitor)) {}

  // The body may be of 64 KiB at most.
  Status Add(uint64_t time, const PerfRecordView& record);
  Status EndRound();
  Status Finish();

 private:
  static constexpr size_t kSegmentBytes = 1 << 20;

  struct Entry {
    uint64_t time;
    uint64_t offset;  // in the input
    uint64_t place;   // counted over all segments there ever were
    uint32_t type;
    uint16_t misc;
    uint16_t size;
  };

  // Room for `size` bytes in one segment; says where.
  char* Allot(size_t size, uint64_t& place);
  const char* At(uint64_t place) const;
  // Hands out what is not newer than `limit`.
  Status Flush(uint64_t limit);
  void TakeDue(uint64_t limit);
  void SortDue();
  void DropSegmentsBefore(uint64_t place);
  Status Shrink();

  Visitor visitor_;
  std::vector<Entry> entries_;  // in the order they came
  std::vector<Entry> due_;
  std::vector<Entry> merged_;
  std::vector<size_t> runs_;  // where the runs of due_ begin
  std::deque<std::unique_ptr<char[]>> segments_;
  std::vector<std::unique_ptr<char[]>> spare_;
  uint64_t first_segment_ = 0;
  size_t used_ = kSegmentBytes;  // of the last segment
  uint64_t newest_ = 0;
  uint64_t round_limit_ = 0;
};

}  // namespace culprit::import_
