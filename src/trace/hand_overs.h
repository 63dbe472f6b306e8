// SPDX-License-Identifier: Apache-2.0
//
// HandOvers: the moments at which a CPU went from one thread straight to another, of
// one block of events. The run of the one and the ready time of the other end at that
// moment, so it need be stored once: a run then ends "at the next hand-over of its
// CPU", a ready time "at the next but two", and who left is who held the CPU. On a busy
// machine two of three durations end so. Encoder and decoder ask the same questions in
// the same order, so that they always agree.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/bytes.h"
#include "trace/column_codec.h"
#include "trace/event.h"

namespace culprit::trace {

class HandOvers {
 public:
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

  void Clear();
  // Those of a block that begins at `start_ns`; all times are since then.
  void Find(const std::vector<Event>& events, int64_t start_ns);
  bool empty() const { return times_.empty(); }
  size_t size() const { return times_.size(); }

  // hand_overs := cpus:varint (cpu:varint moments:varint){cpus} steps:number column
  void Write(ColumnEncoder& columns, ByteWriter& out) const;
  // At most `max` of them. False: damaged.
  bool Read(ByteReader& in, size_t max, ColumnDecoder& columns);

  // Of the next owner, whose events are asked for in order of time.
  void BeginOwner() { ++owner_; }
  // The first one of the CPU at `time` or later, and the one `more` after it. kNowhere:
  // there is none.
  uint32_t AtOrAfter(uint16_t cpu, uint64_t time, uint32_t more);
  uint64_t TimeOf(uint32_t moment) const { return times_[moment]; }
  // How many of the CPU lie in [from, time), if one is at `time` and they are at most
  // `max`; else kNowhere.
  uint32_t StepsTo(uint16_t cpu, uint64_t from, uint64_t time, uint32_t max);

 private:
  struct Lane {
    uint32_t begin = 0, end = 0;
    uint32_t at = 0;  // what the owner asked for last
    uint64_t owner = 0;
  };
  Lane* LaneOf(uint16_t cpu) { return cpu < lanes_.size() ? &lanes_[cpu] : nullptr; }
  uint32_t First(Lane& lane, uint64_t time);

  std::vector<uint64_t> times_;  // by CPU, then ascending
  std::vector<Lane> lanes_;      // by CPU
  uint64_t owner_ = 0;
  std::vector<uint64_t> run_ends_, ready_ends_;  // scratch
};

}  // namespace culprit::trace
