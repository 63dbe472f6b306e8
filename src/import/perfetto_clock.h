// SPDX-License-Identifier: Apache-2.0
//
// PerfettoClocks: times of any clock of a Perfetto trace to its one trace
// clock (boot time unless the trace says otherwise). ClockSnapshots give
// readings of several clocks at one moment; a time is carried over by the
// latest snapshot that has its clock and is not later, if need be through a
// clock that both have. Clocks 64 to 127 belong to one packet sequence; some
// of those are incremental: each packet's time is counted from the one before.
// A lookup is a binary search.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::import_ {

inline constexpr uint32_t kMonotonicClock = 3;
inline constexpr uint32_t kMonotonicRawClock = 5;
inline constexpr uint32_t kBootClock = 6;

class PerfettoClocks {
 public:
  // The bytes of a ClockSnapshot message of packet sequence `sequence`.
  void AddSnapshot(uint32_t sequence, std::string_view message);

  // Nothing if no snapshot leads from that clock to the trace clock. Moves an
  // incremental clock on.
  std::optional<int64_t> ToTraceTime(uint32_t clock, uint32_t sequence, uint64_t time);

  uint32_t trace_clock() const { return trace_clock_; }
  // Unix time less trace time, where a snapshot has both; 0: unknown.
  int64_t wall_offset_ns() const { return wall_offset_ns_; }

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // clock, sequence (0: of all)
  struct Reading {
    int64_t time_ns = 0;
    size_t snapshot = 0;
  };
  struct Unit {
    int64_t multiplier_ns = 1;
    bool incremental = false;
    uint64_t last = 0;
  };

  static Key KeyOf(uint32_t clock, uint32_t sequence) {
    return {clock, clock >= 64 && clock < 128 ? sequence : 0};
  }
  std::optional<int64_t> Convert(const Key& from, int64_t time_ns, int depth) const;

  uint32_t trace_clock_ = kBootClock;
  // Ascending by snapshot; `direct_` those of snapshots that have the trace clock.
  std::map<Key, std::vector<Reading>> readings_;
  std::map<Key, std::vector<Reading>> direct_;
  std::vector<std::vector<std::pair<Key, int64_t>>> snapshots_;
  std::map<Key, Unit> units_;
  int64_t wall_offset_ns_ = 0;
};

}  // namespace culprit::import_
