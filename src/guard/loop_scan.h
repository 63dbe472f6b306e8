// SPDX-License-Identifier: Apache-2.0
//
// LoopScan: what training logs tell about loops. For every wait call of a thread
// that may block (known by its kind, where it returns to and its stack pointer),
// and every two of its waits in a row: the innermost frame of the call's stack that
// outlived the time between, because nothing was entered at or above its stack
// pointer. Also who wakes which object.
//
// Logs are read one after the other, parents before their children. Memory: some
// hundred bytes a distinct wait call of a thread. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "guard/profile.h"
#include "guard/session_code.h"
#include "guard/training_log_reader.h"

namespace culprit::guard {

// Stack pointers of logs are in units of 16 bytes.
inline constexpr uint64_t kSpMask = (uint64_t{1} << 40) - 1;

struct WaitSite {
  CodeAddress returns_to;
  wire::WaitCall call = wire::WaitCall::kOther;

  auto operator<=>(const WaitSite&) const = default;
};

// Repeated waits at a site whose loop is held by one function at one distance.
struct LoopEvidence {
  uint64_t pairs = 0;           // of consecutive waits
  uint64_t ready = 0;           // waits that returned something
  uint64_t inside_other = 0;    // waits in iterations of a loop further out
  std::vector<uint32_t> chain;  // functions from the holder to the call, the holder first
  std::set<std::pair<uint32_t, uint64_t>> objects;  // process, object; a few
  std::set<std::pair<uint32_t, uint32_t>> threads;  // process, thread; a few
};
struct LoopKey {
  WaitSite site;
  uint32_t holder = kNoIndex;
  int64_t base_offset16 = 0;  // holder's stack pointer at entry - the call's

  auto operator<=>(const LoopKey&) const = default;
};

class LoopScan {
 public:
  explicit LoopScan(const SessionCode& code) : code_(&code) {}

  Status Read(const LogFile& log, Diagnostics& diagnostics);

  uint64_t entries() const { return entries_; }
  const std::map<LoopKey, LoopEvidence>& evidence() const { return evidence_; }
  // Who woke an object, and how often: <process, object> -> thread -> times.
  using Wakes = std::map<std::pair<uint32_t, uint64_t>, std::map<uint32_t, uint64_t>>;
  const Wakes& wakes() const { return wakes_; }

 private:
  class Thread;

  const SessionCode* code_;
  uint64_t entries_ = 0;
  std::map<LoopKey, LoopEvidence> evidence_;
  Wakes wakes_;
  // Stacks by process, site address and stack pointer, for children that were
  // forked inside them.
  struct Frame {
    uint32_t function = kNoIndex;
    uint64_t sp16 = 0;  // at entry
  };
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::vector<Frame>> stacks_;
};

}  // namespace culprit::guard
