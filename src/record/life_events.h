// SPDX-License-Identifier: Apache-2.0
//
// LifeEvents: births, names, executable mappings and deaths of all processes and
// threads, as the kernel tells them beside its perf events, with build-ids, so
// that code of a process that has ended can still be named. One small ring a
// CPU; Take() hands out what has come in order of time. CLOCK_MONOTONIC, like
// everything the recorder sees. Needs CAP_PERFMON or perf_event_paranoid <= 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/perf_ring.h"

namespace culprit::record {

struct LifeEvent {
  enum class Kind : uint8_t { kFork, kExit, kName, kExec, kMap, kCgroup, kLost };

  Kind kind = Kind::kFork;
  int64_t time_ns = 0;
  int64_t pid = -1;
  int64_t tid = -1;
  int64_t parent_pid = -1;
  int64_t parent_tid = -1;
  uint64_t start = 0;  // kMap: addresses; kCgroup: its id; kLost: how many
  uint64_t size = 0;
  uint64_t file_offset = 0;
  std::string text = {};  // name, path
};

// One record with its sample_id trailer of tid, time and cpu; nothing if it is
// of no interest or makes no sense.
std::optional<LifeEvent> ParseLifeEvent(std::string_view record);

class LifeEvents {
 public:
  static Result<LifeEvents> Open();

  // What has come since the last call, by time.
  std::vector<LifeEvent> Take();

 private:
  std::vector<PerfRing> rings_;
};

}  // namespace culprit::record
