// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of one thread of the target, beside the UnitSlot that
// culprit can see. A thread gets its state at the first thing it does that
// matters (ThisThread) and gives it back when it ends; the states of threads
// that ended without telling (raw exit) are found when others are looked for.
//
// All states lie in one mapping that the kernel wipes in a forked child, however
// it was forked: a child never writes as its parent. A state belongs to the
// thread whose t_state variable it names. Nothing here calls the C library.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

struct LoadedPlan;

inline constexpr uint32_t kTypeCacheEntries = 64;
inline constexpr uint32_t kSamplesACell = sizeof(wire::Cell::samples) / sizeof(wire::Sample);

// Where this thread appends its next training record.
struct LogCursor {
  uint64_t* next;
  uint64_t* end;
};

struct TypeVerdict {
  uint32_t type = wire::kUnknown;
  uint32_t similarity_ppm = 0;
};

// The verdict on a set of contexts that was judged before.
struct TypeCacheEntry {
  uint64_t contexts[wire::kContextWords];
  uint32_t generation;  // of the plan; 0: empty
  uint32_t loop;
  uint32_t kind;
  TypeVerdict verdict;
};

// Run delay and CPU time of a thread so far.
struct ThreadTimes {
  uint64_t read_ticks = 0;  // 0: never read
  uint64_t read_ns = 0;     // the same moment by the clock of the records
  uint64_t run_delay_ns = 0;
  uint64_t cpu_ns = 0;
};

// How a unit's time divides, as far as it was looked at.
struct UnitTime {
  uint64_t wall_ns = 0;
  uint64_t run_delay_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t Own() const { return wall_ns - run_delay_ns; }
};

// The wait call that a thread is in, on that call's own stack.
struct WaitFrame;

struct ThreadState {
  // Of the unit; see unit_tracker.h.
  std::atomic<uint32_t> tid;  // 0: free
  uint32_t index;
  const void* owner;             // its t_state
  wire::UnitSlot* slot;          // null: this process has none yet
  const LoadedPlan* plan;        // that the unit began under; null: no unit
  uint64_t tail_ticks;           // of the iteration so far, outside handlers
  uint64_t own_ticks;            // spent by the runtime in the unit...
  uint64_t iteration_own_ticks;  // ...and in the iteration
  uint64_t tail_contexts[wire::kContextWords];
  UnitTime tail_time;       // of the tail's parts that were long enough to be measured
  bool told;                // culprit knows that this unit runs too long
  bool tail_told;           // ...that the iteration's tail does
  bool iteration_reported;  // a unit of this iteration was too slow
  bool in_runtime;
  AddressRange stack;          // the mapping it was in when last looked for
  ThreadTimes at_begin;        // read before the unit, and not long before; see thread_times.h
  uint64_t unread_ticks;       // what units took since
  uint64_t exact_until_ticks;  // a unit looked slow of late: read more often until then
  ThreadTimes at_iteration_begin;
  HeldFile schedstat;
  uint32_t units_to_sample;
  uint32_t unpublished_units;
  uint32_t sample_count;
  uint64_t samples_flushed_ticks;
  wire::Sample samples[kSamplesACell];
  uint32_t context_hits[64 * wire::kContextWords];  // of the unit, for the paper's counting
  TypeCacheEntry type_cache[kTypeCacheEntries];

  // Of the training; see training_log.h.
  WaitFrame* wait;
  uint64_t* log;      // the buffer; null: none yet
  LogCursor* cursor;  // its t_log
  HeldFile log_file;
  bool saw_wait;
  uint64_t flushed_ns;
  uint64_t lost_bytes;       // since the last kLost
  uint64_t seen_stacks[64];  // hashes of (site, stack pointer)
  uint32_t stacks;
};

extern __thread ThreadState* t_state;
extern __thread LogCursor t_log;
// The slot, while the thread is in a unit: what guards look at (hook.h).
extern __thread wire::UnitSlot* t_unit;

// False: more threads than there are states end unseen, or no pthread key is free.
bool WatchThreadEnds();

// nullptr: there are kMaxThreads already, or no more system calls may be made.
ThreadState* ThisThread();

// The thread's state if it has one.
inline ThreadState* KnownThread() {
  ThreadState* state = t_state;
  return state != nullptr && state->owner == &t_state ? state : nullptr;
}

// In a forked child, before it does anything.
void ForgetThreadAfterFork();

// Gives back a state whose thread is gone, this one or another.
void ReleaseThread(ThreadState& state);

}  // namespace culprit::guard::runtime
