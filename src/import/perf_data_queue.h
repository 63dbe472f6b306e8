// SPDX-License-Identifier: Apache-2.0
//
// PerfDataQueue: puts records into order of time. perf writes the buffers of
// all CPUs in rounds and promises that nothing written after the end of a round
// is older than the newest record of the round before. Files without rounds are
// ordered within the queue's bound: when it is full, the older half leaves. A
// record that is older than one already handed out comes late, and whoever
// takes it counts that. Ties keep the order of the file.
//
// Memory: at most kMaxQueueBytes of records and as much again while it shrinks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "import/perf_data_layout.h"

namespace culprit::import_ {

inline constexpr size_t kMaxQueueBytes = size_t{96} << 20;

class PerfDataQueue {
 public:
  using Visitor = std::function<Status(uint64_t time, const PerfRecordView&)>;

  explicit PerfDataQueue(Visitor visitor) : visitor_(std::move(visitor)) {}

  Status Add(uint64_t time, const PerfRecordView& record);
  Status EndRound();
  Status Finish();

 private:
  struct Entry {
    uint64_t time;
    uint64_t offset;  // in the input
    uint32_t place;   // in bytes_
    uint32_t type;
    uint16_t misc;
    uint16_t size;
  };

  // Hands out what is not newer than `limit`.
  Status Flush(uint64_t limit);

  Visitor visitor_;
  std::vector<Entry> entries_;
  std::string bytes_;
  uint64_t newest_ = 0;
  uint64_t round_limit_ = 0;
};

}  // namespace culprit::import_
