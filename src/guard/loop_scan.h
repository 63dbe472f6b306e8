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

// Else the wait is for other threads.
inline bool ReceivesFromOutside(wire::WaitCall call) {
  return call != wire::WaitCall::kCondition && call != wire::WaitCall::kSemaphore &&
         call != wire::WaitCall::kFutex && call != wire::WaitCall::kOther;
}

struct LoopKey {
  WaitSite site;
  uint32_t holder = kNoIndex;
  int64_t base_offset16 = 0;  // holder's stack pointer at entry - the call's

  auto operator<=>(const LoopKey&) const = default;
};
// Repeated waits at a site whose loop is held by one function at one distance.
struct LoopEvidence {
  uint64_t pairs = 0;                  // of consecutive waits
  uint64_t ready = 0;                  // waits that returned something
  std::map<LoopKey, uint64_t> inside;  // waits in iterations of a loop further out
  // Pairs between which the thread waited there for other threads.
  std::map<WaitSite, uint64_t> across;
  // The same, where the holder made the wait itself, or what it calls did.
  std::map<WaitSite, uint64_t> across_in_holder;
  bool holder_unwound = true;  // the runtime's stacks showed the holder, always
  // Pairs between which the thread read: last from the same source as before the
  // first wait, and from another (another connection).
  uint64_t stayed = 0;
  uint64_t moved = 0;
  std::vector<uint32_t> chain;  // functions from the holder to the call, the holder first
  int32_t callee_depth = 0;     // of the second of these, as Context::depth
  std::set<std::pair<uint32_t, uint64_t>> objects;  // process, object; a few
  std::set<std::pair<uint32_t, uint32_t>> threads;  // process, thread; a few
};
// Stacks of wait calls, as training logged them: once for a return address and a
// stack pointer of a process. A child that was forked inside a call has its parent's.
class WaitStacks {
 public:
  struct Frame {
    uint32_t function = kNoIndex;
    uint64_t sp16 = 0;     // at entry
    bool entered = false;  // known by its entry alone: no stack showed it
  };
  using Frames = std::vector<Frame>;  // innermost first

  void Set(uint32_t pid, uint64_t address, uint64_t sp16, const Frames& frames) {
    stacks_[{pid, address, sp16}] = frames;
  }
  // nullptr: none.
  const Frames* Find(const LogFile& log, uint64_t address, uint64_t sp16) const;

 private:
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, Frames> stacks_;
};

class LoopScan {
 public:
  explicit LoopScan(const SessionCode& code) : code_(&code) {}

  Status Read(const LogFile& log, Diagnostics& diagnostics);

  uint64_t entries() const { return entries_; }
  // Else it cannot be patched, or was not called.
  bool WasEntered(uint32_t function) const {
    return function < entered_.size() && entered_[function] != 0;
  }
  const std::map<LoopKey, LoopEvidence>& evidence() const { return evidence_; }
  // Who woke an object, and how often: <process, object> -> thread -> times.
  using Wakes = std::map<std::pair<uint32_t, uint64_t>, std::map<uint32_t, uint64_t>>;
  const Wakes& wakes() const { return wakes_; }
  const WaitStacks& stacks() const { return stacks_; }
  // How often a thread <process, thread> read from another source than before.
  uint64_t SourceChanges(const std::pair<uint32_t, uint32_t>& thread) const {
    const auto found = source_changes_.find(thread);
    return found == source_changes_.end() ? 0 : found->second;
  }

 private:
  class Thread;

  const SessionCode* code_;
  uint64_t entries_ = 0;
  std::vector<uint8_t> entered_;  // by function
  std::map<LoopKey, LoopEvidence> evidence_;
  Wakes wakes_;
  using Frame = WaitStacks::Frame;
  WaitStacks stacks_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> source_changes_;
};

}  // namespace culprit::guard
