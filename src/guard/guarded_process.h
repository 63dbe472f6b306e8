// SPDX-License-Identifier: Apache-2.0
//
// GuardedProcess: culprit's end of the files that one process with the injected
// runtime keeps in a session folder (runtime/wire.h): its counters, the slots of
// its threads, and the ring of violations and samples, of which this is the only
// reader. What the files say is checked: a process that writes nonsense into them
// loses its records (counted), nothing else. One thread at a time. While nothing is to
// be seen, slots and ring cost one system call each, and one more a unit that is late.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/proc_file.h"
#include "guard/runtime/wire.h"
#include "guard/shared_file.h"

namespace culprit::guard {

// wire::SlotsHeader without its clock.
struct ProcessCounters {
  int64_t pid = 0;
  int64_t parent_pid = 0;
  uint32_t plan = 0;
  uint32_t patched = 0;
  uint32_t refused = 0;
  uint32_t removed = 0;
  uint32_t foreign_modules = 0;
  uint64_t lost_log_bytes = 0;
  uint64_t lost_records = 0;
  uint64_t units = 0;
  uint64_t violations = 0;
  uint64_t suppressed = 0;
  uint64_t hits = 0;  // of the threads that have slots now
  bool ended = false;
};

// A unit that a thread is in the midst of.
struct OpenUnit {
  int64_t tid = 0;
  uint32_t slot = 0;
  uint64_t begin_ticks = 0;
  uint64_t begin_ns = 0;
  uint64_t elapsed_ns = 0;
  uint64_t run_delay_ns = 0;  // of the thread, as read at the unit's begin or later
  uint64_t allowed_ns = 0;    // it is overdue after so long; 0: never
  wire::UnitKind kind = wire::UnitKind::kIteration;
  uint32_t loop = 0;
  uint32_t ready = 0;
  uint64_t trickle_ns = 0;  // an output of the thread trickles since then; 0: none does
  uint64_t contexts[wire::kContextWords] = {};
};

// A thread with a slot, and how many units it has made so far.
struct ThreadUnits {
  int64_t tid = 0;
  uint32_t loop = 0;  // that it was in last
  uint64_t units = 0;
};

struct RingSink {
  std::function<void(const wire::Violation&)> violation;
  std::function<void(std::span<const wire::Sample>)> samples;
  std::function<void()> modules_changed;
};

class GuardedProcess {
 public:
  // An Error while the runtime is still making its files: try again later.
  static Result<GuardedProcess> Open(const std::string& session, int64_t pid);

  int64_t pid() const { return pid_; }
  // The process it was forked from with guards; 0: none.
  int64_t parent_pid() const { return parent_pid_; }
  ProcessCounters Counters() const;
  // What is said of one that is in time may be of two that follow each other.
  std::vector<OpenUnit> OpenUnits(uint64_t now_ns) const;
  // Its thread has not gone on to another one since.
  bool IsOpen(const OpenUnit& unit) const;
  std::vector<ThreadUnits> UnitsByThread() const;
  // As of the last OpenUnits(): no unit was open, and none had been since the one before.
  bool idle() const { return idle_; }
  // In the runtime's trampolines. A system call.
  bool IsTrampoline(uint64_t address) const;
  // Everything that is in the ring now. Returns how many records it took.
  uint64_t Drain(const RingSink& sink);
  uint64_t bad_records() const { return bad_records_; }
  bool alive() const;
  // It became another program (exec), whose files are or will be others of the same names.
  bool replaced() const { return slots_.removed() || ring_.removed(); }

 private:
  GuardedProcess(int64_t pid, int64_t parent_pid, SharedFile slots, SharedFile ring)
      : pid_(pid),
        parent_pid_(parent_pid),
        life_(pid),
        slots_(std::move(slots)),
        ring_(std::move(ring)) {}
  void Deliver(const wire::Cell& cell, const RingSink& sink);
  // Reads the header, and calls `see` for every used slot with its index; one that was
  // being changed is not IsWhole. False: the header cannot be read.
  template <class See>
  bool ForEachSlot(wire::SlotsHeader& header, See see) const;
  bool IsWhole(const wire::UnitSlot& slot, uint32_t index) const;

  int64_t pid_;
  int64_t parent_pid_;
  ProcessLife life_;
  SharedFile slots_;
  SharedFile ring_;
  mutable std::vector<uint8_t> buffer_;
  mutable std::vector<uint8_t> last_;  // buffer_ of the last OpenUnits
  mutable bool idle_ = false;
  mutable uint32_t expected_slots_ = 0;
  uint64_t bad_records_ = 0;
};

}  // namespace culprit::guard
