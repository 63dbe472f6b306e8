// SPDX-License-Identifier: Apache-2.0
//
// The guarded process: the files that it shares with culprit (slots.PID,
// ring.PID) and the states of its threads. A forked child finds this memory
// wiped by the kernel, whichever way it was forked, and makes files of its own at
// its first unit; children that only exec make none. A vforked child shares it
// with its sleeping parent.
//
// Any thread. Failure (a full disk) is final for the process: it then goes on
// unguarded.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/runtime/ring.h"
#include "guard/runtime/shared_area.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

struct Process {
  enum Stage : uint32_t { kNothing = 0, kBeingMade, kMade, kFailed };
  std::atomic<uint32_t> stage;
  std::atomic<uint32_t> states_used;  // no state at or above it was ever used
  uint32_t pid;
  uint32_t parent_pid;
  wire::SlotsHeader* header;
  wire::UnitSlot* slots;
  wire::RingHeader* ring;
  wire::Cell* cells;
  SharedArea slots_area;  // that header and slots lie in...
  SharedArea ring_area;   // ...and ring and cells
  std::atomic<uint64_t> log_bytes;
  std::atomic<uint64_t> report_credit_ns;  // token bucket: see violation_report.h
};

// False: this kernel cannot wipe memory in children, or has no room.
bool MakeProcessMemory();
Process& ThisProcess();
ThreadState* ThreadStates();

// The process that this one was forked from with guards; 0: none.
uint32_t ParentPid();

// True: the shared files are there. False: they cannot be had, or another thread
// is just making them.
bool EnsureProcess();

// False: the ring is full, or cannot be had. For `fill` see ring.h.
template <class Fill>
bool WriteToRing(Fill fill) {
  Process& process = ThisProcess();
  const auto reach = [&process](uint64_t cell) {
    return process.ring_area.Reach(wire::kRingOffset + (cell + 1) * wire::kCellBytes);
  };
  return WriteRecord(*process.ring, process.cells, reach, fill);
}

// Before no more system calls may be made: what this process will need of the files.
void ReserveFiles();

// A new session begins: the files of the last one are let go.
void ForgetProcessFiles();

// Before exec: the files of a process that never waited (it only starts another,
// perhaps as another user, who could not replace them) are removed. If the exec
// fails, they are made again at the first wait.
void RemoveFilesOfLauncher();

// In a forked child: what the kernel should have wiped is wiped (emulators of
// system calls do not).
void WipeAfterFork();

// The thread's slot in them; false: no unit can begin.
bool EnsureSlot(ThreadState& state);

// Counters of what was patched, kept also for children (SlotsHeader has them).
struct PatchCounters {
  std::atomic<uint32_t> plan, patched, refused, removed, foreign_modules;
  std::atomic<uint64_t> islands[wire::kIslands];
};
PatchCounters& Counters();
// The thread's units since the last time, where culprit sees them.
void PublishUnits(ThreadState& state);
// Copies the counters there.
void PublishCounters();

template <class See>
void ForEachThread(See see) {
  const uint32_t used = ThisProcess().states_used.load(std::memory_order_acquire);
  ThreadState* states = ThreadStates();
  for (uint32_t i = 0; i < used; ++i) {
    if (states[i].tid.load(std::memory_order_acquire) != 0) see(states[i]);
  }
}

}  // namespace culprit::guard::runtime
