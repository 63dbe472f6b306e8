// SPDX-License-Identifier: Apache-2.0
//
// What the runtime knows of one thread of the target, beside the UnitSlot that
// culprit can see. A thread gets its state at the first thing it does that
// matters (ThisThread) and gives it back when it ends; the states of threads
// that ended without telling (raw exit) are found when others are looked for.
//
// All states lie in one mapping that the kernel wipes in a forked child, however
// it was forked: a child never writes as its parent. A state belongs to the
// thread whose t_words it names. Nothing here calls the C library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "guard/runtime/loaded_modules.h"
#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/nearest_type.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

inline constexpr uint32_t kFollowed = 8;
inline constexpr uint32_t kForeignSites = 8;  // a power of two
inline constexpr uint32_t kNoTurns = 16;      // a power of two
inline constexpr uint32_t kTypeCacheEntries = 64;
inline constexpr uint32_t kSamplesACell = sizeof(wire::Cell::samples) / sizeof(wire::Sample);

// Where this thread appends its next training record.
struct LogCursor {
  uint64_t* next;
  uint64_t* end;
};

// The verdict on a set of contexts that was judged before.
struct TypeCacheEntry {
  uint64_t contexts[wire::kContextWords];
  uint32_t generation;  // of the plan; 0: empty
  uint32_t loop;
  uint32_t kind;
  TypeVerdict verdict;
};

// What the stack said of a wait call, so that it need not be walked at every wait
// (loop_head.h).
struct HeadMemo {
  uint64_t return_address;
  uint64_t sp;
  const SiteRule* head;  // null: no loop's
  uint64_t nested_in;    // the base of a loop further out that it was found inside of
  uint32_t generation;   // of the plan; 0: empty
  uint32_t asked;        // how often, while there is no head
};
inline constexpr uint32_t kHeadMemos = 64;  // a power of two

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

// A descriptor that takes output, in one iteration after the other (trickle.h).
struct FollowedOutput {
  uint64_t data = 0;  // of its events
  ThreadTimes begin = {};
  uint64_t limit_ticks = 0;  // from then on it may be too slow
  uint64_t events = 0;       // of all its iterations
  uint32_t iterations = 0;
  bool told = false;   // it is too slow
  bool shown = false;  // it may become so, and the slot says it
  bool goes_on = false;
};

// The wait call that a thread is in, on that call's own stack.
struct WaitFrame;

struct ThreadState;

// What an iteration does not have to be troubled with, mostly; together they are
// looked at as one word.
struct alignas(8) Oddities {
  bool loud;  // something was to be said of this iteration: all of it goes the long way
  bool in_runtime;
  bool times_moved;  // at_iteration_begin is not at_begin
  bool calibrates;   // the plan's mode, or...
  bool counts_hits;  // ...that it has hit_counting
  bool follows;      // outputs (trickle.h)
  bool reserved[2];

  bool Any() const { return __builtin_bit_cast(uint64_t, *this) != 0; }
};
static_assert(sizeof(Oddities) == sizeof(uint64_t));

// What a thread has in its own memory.
struct ThreadWords {
  ThreadState* state;
  wire::UnitSlot* unit;  // the slot, while the thread is in a unit: what guards look at (hook.h)
};

struct alignas(64) ThreadState {
  // Of the unit; see unit_tracker.h and unit_cut.h. What every unit touches comes
  // first, in three lines of the cache (four where a loop has handlers), so that nothing
  // else need be there: behind a system call none of them is near.
  ThreadWords* owner;          // its t_words
  wire::UnitSlot* slot;        // null: this process has none yet
  const LoadedPlan* plan;      // that the unit began under; null: no unit
  uint64_t head_sp;            // of the wait call of the loop that base_sp is of...
  uint64_t head_site;          // ...which returns there
  uint64_t quiet_until_ticks;  // a part that ends before it needs no look; 0: it does
  uint64_t until_sample;       // so many units, then one is a sample
  Oddities odd;

  uint64_t unread_ticks;        // what iterations took since the thread's times were read
  uint64_t unread_from_ticks;   // what this one takes counts from here; after it, its end
  uint64_t read_after_ticks;    // when it is so much, they are read again...
  uint64_t clocks_until_ticks;  // ...and from then on the clocks
  uint64_t refresh_ticks;       // from then on the thread's times are to be read
  uint64_t work_ticks;          // from then on a wait asks whether there is work for the session
  uint32_t sample_count;
  uint32_t index;
  uint64_t reserved;

  uint32_t head_call;      // WaitCall
  uint16_t context_words;  // of a context set, that the plan uses
  bool turned;             // the iteration began with a turn, no unit yet (PlanSite::kTurns)
  int blocking_fd;         // + 1: it was asked, and blocks; 0: none...
  uint32_t blocking_uses;  // ...since so many waits
  uint64_t iteration_deadline_ticks;
  uint64_t iteration_allowed_ticks;  // for each ready event; 0: not checked
  uint64_t tail_ticks;               // of the iteration so far, outside handlers
  uint64_t tail_allowed_ticks;       // before the tail can be too slow
  LoopLimits limits;                 // of the loop

  uint64_t tail_contexts[wire::kContextWords];
  // Calls that return there are no heads by this plan (quick_wait.h).
  alignas(64) uint64_t foreign_sites[kForeignSites];
  const SiteRule* head;          // of the loop
  std::atomic<uint32_t> tid;     // 0: free
  uint64_t own_ticks;            // spent by the runtime in the unit...
  uint64_t iteration_own_ticks;  // ...and in the iteration
  UnitTime tail_time;            // of the tail's parts that were long enough to be measured
  bool told;                     // culprit knows that this unit runs too long
  bool tail_told;                // ...that the iteration's tail does
  bool iteration_reported;       // a unit of this iteration was too slow
  AddressRange stack;            // the mapping it was in when last looked for
  ThreadTimes at_begin;          // read before the unit, and not long before; see thread_times.h
  ThreadTimes at_iteration_begin;
  ThreadTimes at_end;  // the last reading
  HeldFile schedstat;
  uint32_t readings_unasked;  // since it was last asked whether that is ours
  uint32_t calm;              // 1: units waited for a CPU lately; more, the longer they did not
  uint64_t published_units;   // of slot->units, in the process's counter
  uint64_t samples_flushed_ticks;
  wire::Sample samples[kSamplesACell];
  uint32_t context_hits[64 * wire::kContextWords];  // of the unit, for the paper's counting
  FollowedOutput outputs[kFollowed];
  uint32_t followed;  // of these; odd.follows: any
  TypeCacheEntry type_cache[kTypeCacheEntries];
  HeadMemo heads[kHeadMemos];
  uint64_t no_turns[kNoTurns];  // calls that return there turn no loop (loop_turn.h)...
  uint32_t no_turns_of;         // ...by the plan of this generation

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

static_assert(offsetof(ThreadState, unread_ticks) == 64);
static_assert(offsetof(ThreadState, head_call) == 128);
static_assert(offsetof(ThreadState, limits.smallest_ticks) + sizeof(uint64_t) == 192);

extern __thread ThreadWords t_words;
extern __thread LogCursor t_log;

// False: more threads than there are states end unseen, or no pthread key is free.
bool WatchThreadEnds();

// nullptr: there are kMaxThreads already, or no more system calls may be made.
ThreadState* ThisThread();

// The thread's state if it has one.
inline ThreadState* KnownThread() {
  ThreadState* state = t_words.state;
  return state != nullptr && state->owner == &t_words ? state : nullptr;
}

// In a forked child, before it does anything.
void ForgetThreadAfterFork();
// Then, if the parent knew it: the stack that its one thread has. (Looked up, it costs
// the reading of /proc/self/maps.)
void ExpectStack(const AddressRange& stack);

// Gives back a state whose thread is gone, this one or another.
void ReleaseThread(ThreadState& state);

}  // namespace culprit::guard::runtime
