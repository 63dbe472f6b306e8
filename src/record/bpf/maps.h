// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// What the programs share: the policy that the recorder writes, the ring, the
// state kept for every thread, who is recorded, and the counters of each CPU.
#ifndef CULPRIT_RECORD_BPF_MAPS_H_
#define CULPRIT_RECORD_BPF_MAPS_H_

#include "kernel_types.h"
#include "records.h"

enum { kMaxNames = 4, kSyscallNumbers = 512 };

const volatile uint32_t self_tgid = 0;
const volatile uint32_t whole_system = 0;
const volatile uint32_t has_samples = 0;
const volatile uint32_t has_switches = 1;  // else only system calls are counted
const volatile uint32_t sees_resumes = 0;  // by on_resume
const volatile uint32_t wanted_names = 0;
const volatile char wanted_name[kMaxNames][kNameBytes] = {};

// By number of the system call: which argument, from 1, holds its operation; 0: it
// has none.
const volatile uint8_t operation_argument[kSyscallNumbers] = {};

volatile struct Policy policy = {.begin_ns = ~0ull,
                                 .end_ns = ~0ull,
                                 .resume_ns = ~0ull,
                                 .user_stacks = 1,
                                 .kernel_stacks = 1,
                                 .waker_stacks = 1,
                                 .syscall_stacks = 1};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} ring SEC(".maps");

// What every switch and wake-up needs comes first: it begins 8 bytes into a line of the
// cache, and ends with the second.
struct ThreadState {
  uint64_t in_ns;   // when it last got a CPU
  uint64_t out_ns;  // when it lost it; 0: it runs
  uint64_t wake_ns;
  uint64_t user_stack;
  uint64_t kernel_stack;
  union {
    uint64_t waker_user_stack;
    uint64_t user_leaf;
  };
  uint64_t waker_kernel_stack;
  uint64_t told_ns;  // when its last record was made
  uint64_t run_ns;   // since then
  uint32_t pauses;   // policy.pauses when the rest was true
  uint32_t left_count;
  uint32_t waker_tid;
  uint32_t holder_tid;
  uint32_t wake_device;
  uint16_t waker_cpu;
  uint16_t out_cpu;
  uint8_t known;  // all of this is valid
  uint8_t flags;  // WaitFlag
  uint8_t gone;   // it has had its last switch-out
  // It has a CPU since in_ns, and its wait, since out_ns, is to be told (on_resume).
  uint8_t resumes;
  uint16_t stack_epoch;  // policy.epoch when user_stack was taken
  uint16_t in_cpu;
  // The kernel's own totals when it last got or lost a CPU, for what a pause hid.
  uint64_t kernel_run_ns;
  uint64_t kernel_ready_ns;
  uint64_t kernel_switches;
  uint64_t left_wait_ns;
  uint64_t left_ready_ns;
  uint64_t syscall_ns;
  uint32_t syscall_number;
  uint32_t syscall_operation;  // the argument that tells it
  uint32_t left_lost;
  uint16_t left_epoch;     // policy.epoch of the stacks that follow
  uint8_t stands;          // its wait is told for those that are left out
  uint8_t left_is_chosen;  // they are of a wait that was told for that
  uint32_t left_waits;     // of left_count
  uint32_t last_pad;
  // Of a wait that stands for those that are left out.
  uint64_t left_user_stack;
  uint64_t left_kernel_stack;
  uint64_t unseen_ns;  // waiting that was left out since then
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct ThreadState);
} threads SEC(".maps");

// By process id; children of a member are members. Its memory is taken at once:
// before 6.1 a program of a perf event (samples) may use no other kind.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __type(key, uint32_t);
  __type(value, uint8_t);
} targets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, struct Counters);
} counters SEC(".maps");

// What names of stacks begin with. What was remembered of another epoch is not found.
enum { kEpochShift = 54 };
static __always_inline uint64_t epoch_seed(void) { return (uint64_t)policy.epoch << kEpochShift; }

// Monotonic, in steps of kClockStepNs.
static __always_inline uint64_t clock_ns(void) {
  return bpf_ktime_get_ns() & ~(uint64_t)(kClockStepNs - 1);
}

static __always_inline struct Counters *cpu_counters(void) {
  const uint32_t zero = 0;
  return bpf_map_lookup_elem(&counters, &zero);
}

// A program that can be interrupted by another one must not share its scratch memory with
// it: each has its own slot.
enum ScratchSlot {
  kSwitchSlot,
  kResumeSlot,
  kWakingSlot,
  kSampleSlot,
  kSyscallSlot,
  kBlockSlot,
  kIteratorSlot,
  kScratchSlots,
};

static __always_inline uint32_t desk_of(uint32_t slot) {
  if (slot == kSampleSlot) return kSampleDesk;
  if (slot == kResumeSlot) return kResumeDesk;
  return slot == kSwitchSlot || slot == kWakingSlot ? kSwitchDesk : kIssueDesk;
}

#define COUNT(field, amount)                     \
  do {                                           \
    struct Counters *counters_ = cpu_counters(); \
    if (counters_) counters_->field += (amount); \
  } while (0)

static __always_inline void expect_resume(void) { COUNT(resumes, 1); }

// Of some thread on this CPU, since it was last asked.
static __always_inline bool is_resume_expected(void) {
  struct Counters *counters_of_cpu = cpu_counters();
  if (!counters_of_cpu || !counters_of_cpu->resumes) return false;
  counters_of_cpu->resumes = 0;
  return true;
}

// The time, of a run that is timed; 0 of others. For programs that need no clock: it waits for all
// that the processor has begun, which just after a switch takes 0.2 us.
static __always_inline uint64_t begin_run(uint32_t meter_kind) {
  const struct Counters *counters_of_cpu = cpu_counters();
  return counters_of_cpu && counters_of_cpu->untimed[meter_kind] == kTimedRun - 1 ? clock_ns() : 0;
}

static __always_inline void end_run(uint32_t meter_kind, uint64_t begin_ns) {
  struct Counters *counters_of_cpu = cpu_counters();
  if (!counters_of_cpu) return;
  const uint32_t untimed = counters_of_cpu->untimed[meter_kind];
  if (untimed < kTimedRun - 1) {
    counters_of_cpu->untimed[meter_kind] = untimed + 1;
    return;
  }
  counters_of_cpu->untimed[meter_kind] = 0;
  struct Meter *meter = &counters_of_cpu->meters[meter_kind];
  meter->timed += 1;
  meter->run_ns += clock_ns() - begin_ns;
}

static __always_inline void count_stack(void) { COUNT(stacks, 1); }
static __always_inline void count_recalled_stack(void) { COUNT(recalled, 1); }
static __always_inline void count_new_stack(void) { COUNT(new_stacks, 1); }
static __always_inline void count_failed_stack(void) { COUNT(failed_stacks, 1); }

static __noinline void count_lost(uint32_t bytes) {
  struct Counters *c = cpu_counters();
  if (!c) return;
  c->lost_records += 1;
  c->lost_bytes += bytes;
}

static __always_inline bool put(void *record, uint32_t bytes) {
  if (bpf_ringbuf_output(&ring, record, bytes, BPF_RB_NO_WAKEUP) == 0) return true;
  count_lost(bytes);
  return false;
}

static __always_inline void *reserve(uint32_t bytes) {
  void *record = bpf_ringbuf_reserve(&ring, bytes, 0);
  if (!record) count_lost(bytes);
  return record;
}

static __always_inline void fill_head(struct RecordHead *head, uint8_t type, uint64_t time_ns,
                                      uint32_t tid) {
  head->time_ns = time_ns;
  head->tid = tid;
  head->type = type;
  head->flags = 0;
  head->cpu = bpf_get_smp_processor_id();
}

// The hash of a stack grows with its frames: the leaf's caller, its caller and so on, at
// last whose it is and the leaf, so that stacks with the same callers have most of it in
// common.
static __always_inline uint64_t first_hash(uint64_t seed) { return seed + 0x9e3779b97f4a7c15ull; }

static __always_inline uint64_t add_frame(uint64_t hash, uint64_t address) {
  hash = (hash ^ address) * 0xff51afd7ed558ccdull;
  return hash ^ hash >> 32;
}

static __always_inline uint64_t end_hash(uint64_t hash, uint64_t seed, uint64_t leaf) {
  hash = add_frame(add_frame(hash, seed), leaf);
  return hash ? hash : 1;
}

// Of the frames from `first` on.
__noinline uint64_t hash_of_frames(struct StackRecord *stack, uint32_t first, uint32_t count,
                                   uint64_t seed) {
  if (!stack) return 0;
  uint64_t hash = first_hash(seed);
  for (uint32_t i = 0; i < kMaxStackFrames; ++i) {
    uint64_t index = first + i;
    if (index >= count) break;
    // The verifier must see the bound.
    asm volatile("%0 &= 0x7f" : "+r"(index));
    if (index >= kMaxStackFrames) break;
    hash = add_frame(hash, stack->addresses[index]);
  }
  return hash;
}

static __always_inline bool is_within_recording(uint64_t now) {
  return now >= policy.begin_ns && now < policy.end_ns;
}

// Not during a pause.
static __always_inline bool is_recorded_at(uint64_t now) {
  return now >= policy.resume_ns && now < policy.end_ns;
}

static __always_inline bool is_target(struct task_struct *task) {
  const uint32_t tgid = task->tgid;
  if (whole_system) return task->pid != 0 && tgid != self_tgid;
  return bpf_map_lookup_elem(&targets, &tgid) != 0;
}

static __always_inline bool is_kernel_thread(struct task_struct *task) {
  return (task->flags & kKernelThread) != 0;
}

#endif  // CULPRIT_RECORD_BPF_MAPS_H_
