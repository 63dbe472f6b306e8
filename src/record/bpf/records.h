// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
//
// What the kernel programs (engine.bpf.c) put into the ring and what the
// recorder reads from it: the one header both sides include. Every record
// begins with a RecordHead; its type tells its size. Records of one thread are
// in the ring in the order in which they happened, because each is put there by
// the CPU that ran the thread; records of different threads are only nearly in
// order of time.
//
// A thread's time is whole without a record at its switch-out: a WaitRecord
// tells when it lost the CPU, when it was woken, when it got a CPU again. What
// is left out on purpose (waits below Policy::min_wait_ns) or for want of room
// is added up in the kernel per thread and told by a LeftOutRecord that comes
// before the thread's next record. Of the waits that are left out on purpose one is told in
// full every now and then, to stand for the others: the one in which a thread's waiting
// passes a mark. Marks lie at most kStandInNs of waiting apart, half of that on average, so
// that each is chosen as its length deserves. So, from
// one record of a thread to the next:
//
//   time of the last + running [+ left out: running, waiting, ready] = out_ns
//
// Stacks are told once by a StackRecord and then named by a 64-bit hash. Of who is
// interrupted the leaf may be anywhere, so that hardly two stacks are the same, but many
// have the same callers: these are told, as a stack whose leaf is 0, and the leaf is in the
// record that names them.
#ifndef CULPRIT_RECORD_BPF_RECORDS_H_
#define CULPRIT_RECORD_BPF_RECORDS_H_

#ifdef __cplusplus
#include <cstdint>
namespace culprit::record {
#endif

enum {
  kMaxStackFrames = 127,
  kMaxMarkBytes = 256,
  kMaxIrqRanges = 16,
  kKernelPlaces = 256,     // where kernel stacks are remembered, for every CPU and desk
  kProvenLists = 1 << 14,  // of callers in user stacks, for all CPUs
  kToldStacks = 1 << 15,   // each is two
  kKernelChains = 1024,    // proven lists of return addresses in the kernel, for every CPU and desk
  kNameBytes = 16,
  // Times are multiples of this. The programs themselves take some hundred nanoseconds
  // at every switch; what is finer than this tells nothing, and would be a third of the
  // trace.
  kClockStepNs = 16,
  kStandInNs = 20000000,
};

// Where stacks are remembered (remembered.h): of which programs.
enum Desk {
  kSwitchDesk,  // on_switch, on_waking: interrupts are off
  kIssueDesk,   // on_issue, system calls: within a thread
  kResumeDesk,  // on_resume: interrupts come in, whose programs have the others
  kDesks,
  // Samples are not remembered, only the rules that they were walked by.
  kSampleDesk = kDesks,
  kRuleDesks,
};

enum RecordType {
  kWaitRecord = 1,
  kLeftOutRecord = 2,
  kSampleRecord = 3,
  kGoneRecord = 4,
  kStackRecord = 5,
  kSyscallRecord = 7,
  kBlockRecord = 8,
  kMarkRecord = 9,
  kOpenRecord = 10,
  kProbeRecord = 11,
};

struct RecordHead {
  uint64_t time_ns;  // CLOCK_MONOTONIC, in steps of kClockStepNs
  uint32_t tid;
  uint8_t type;
  uint8_t flags;
  uint16_t cpu;
};

enum WaitFlag {
  kWasRunnable = 1 << 0,    // preempted: it did not wait
  kSinceBegin = 1 << 1,     // it was off the CPU before the recording began
  kNewThread = 1 << 2,      // its first time on a CPU
  kWakeHardIrq = 1 << 3,    // woken from a hard interrupt
  kWakeSoftIrq = 1 << 4,    // woken while a soft interrupt was served
  kLeafApart = 1 << 5,      // user_stack are callers, the leaf is user_leaf
  kWakeEarly = 1 << 6,      // the waking came before the switch-out
  kSwitchOutLost = 1 << 7,  // out_ns is not known, and in its place the last switch-in
};

// time_ns: when it got a CPU again.
struct WaitRecord {
  struct RecordHead head;
  uint64_t out_ns;
  uint64_t wake_ns;  // 0: nobody was seen to wake it
  uint64_t user_stack;
  uint64_t kernel_stack;
  union {
    uint64_t waker_user_stack;
    uint64_t user_leaf;  // of who was interrupted, and has no waker
  };
  uint64_t waker_kernel_stack;
  uint32_t waker_tid;
  uint32_t holder_tid;   // who had the CPU it was waiting for; 0: nobody
  uint32_t wake_device;  // the disk that completed a request on the waker's CPU just before
  uint16_t waker_cpu;
  uint16_t out_cpu;
};

// Covers the thread's time from its last record on.
struct LeftOutRecord {
  struct RecordHead head;
  uint64_t run_ns;
  uint64_t wait_ns;
  uint64_t ready_ns;
  // Of a wait that stands for those that are left out; 0: of none.
  uint64_t user_stack;
  uint64_t kernel_stack;
  uint32_t count;
  uint32_t waits;  // how many of them were no mere preemptions, at most
  uint32_t lost;   // for want of room
  uint32_t pad;
};

struct SampleRecord {
  struct RecordHead head;
  uint64_t user_callers;
  uint64_t user_leaf;
  uint64_t kernel_stack;
};

// Its last switch-out.
struct GoneRecord {
  struct RecordHead head;
};

struct StackRecord {
  struct RecordHead head;
  uint64_t id;
  uint32_t tgid;  // whose addresses; 0: the kernel's
  uint32_t count;
  uint64_t addresses[kMaxStackFrames];  // leaf first, only `count` of them; leaf 0: callers alone
};

struct SyscallRecord {
  struct RecordHead head;  // time_ns: of the return
  uint64_t enter_ns;
  int64_t result;
  uint64_t user_stack;
  uint32_t number;
  uint32_t operation;  // the argument that tells it, where the call is many in one
};

struct BlockRecord {
  struct RecordHead head;  // tid: who issued it, 0 from an interrupt
  uint64_t issue_ns;
  uint64_t sector;
  uint64_t user_stack;
  uint64_t kernel_stack;
  uint32_t device;  // major << 20 | minor
  uint32_t bytes;
  uint32_t operation;  // REQ_OP_*
  uint32_t pad;
};

struct MarkRecord {
  struct RecordHead head;
  uint32_t tgid;
  uint32_t length;
  char text[kMaxMarkBytes];
};

// A probe of the program was met.
struct ProbeRecord {
  struct RecordHead head;
  uint64_t cookie;
  uint32_t tgid;
  uint32_t pad;
};

enum OpenFlag {
  kOpenOnCpu = 1 << 1,  // it runs; out_ns is when it got the CPU
};

// The state of a thread when the recording ends, or when a snapshot is taken.
// flags: those of WaitRecord, too.
struct OpenRecord {
  struct WaitRecord wait;  // head.time_ns: when this was read
  uint64_t program_counter;
  uint64_t stack_pointer;
  uint64_t frame_pointer;
  uint64_t link_register;     // 0 where there is none
  uint64_t syscall_enter_ns;  // 0: in no recorded system call
  uint32_t syscall_number;
  uint32_t syscall_operation;
  uint32_t tgid;
  uint32_t flags;  // OpenFlag
};

// System calls that are only counted.
struct CallKey {
  char process[kNameBytes];  // the name of its first thread
  uint32_t number;
  uint32_t operation;
  uint32_t error;  // 0: it did not fail
};
struct CallCount {
  uint64_t calls;
  uint64_t dur_ns;
};

struct AddressRange {
  uint64_t start;
  uint64_t end;  // exclusive
};

// Written by the recorder while the programs run.
struct Policy {
  uint64_t begin_ns;   // what happened before is not recorded
  uint64_t end_ns;     // nor what happens from here on
  uint64_t resume_ns;  // nor before this: the end of the last pause; ~0 during one
  uint64_t min_wait_ns;
  uint64_t min_syscall_ns;
  uint32_t user_stacks;
  uint32_t kernel_stacks;
  uint32_t waker_stacks;
  uint32_t syscall_stacks;
  uint32_t pauses;  // so far; a thread's state is of the time before, or after, the last
  uint32_t epoch;   // part of the names of stacks: in another one all are told again
};

// What programs cost is measured by themselves, of one run in a few: to have the
// kernel do it (BPF_ENABLE_STATS) costs each run two more looks at the clock.
enum MeterKind {
  kSwitchMeter,
  kResumeMeter,
  kWakingMeter,
  kSampleMeter,
  kEnterMeter,
  kExitMeter,
  kBlockMeter,
  kLifeMeter,
  kProbeMeter,
  kMeters,
};
enum { kTimedRun = 13 };  // not a divisor of anything: threads take turns, and each is to be met
struct Meter {
  uint64_t timed;   // runs
  uint64_t run_ns;  // of these
};

// One for every CPU.
struct Counters {
  // What every switch and wake-up counts comes first.
  uint64_t busy_ns;   // CPU time of the recorded threads, as far as they have left the CPU
  uint64_t recalled;  // kernel stacks that were remembered
  // User stacks that proven_stack found, which are counted nowhere else.
  uint64_t chains;
  uint64_t chain_frames;
  uint32_t untimed[kMeters];  // runs since one was timed
  uint32_t resumes;           // that on_resume is to see
  uint64_t chain_guesses;
  uint64_t stacks;      // captured in another way
  uint64_t new_stacks;  // told for the first time, or again
  uint64_t failed_stacks;
  uint64_t lost_records;  // for want of room in the ring
  uint64_t lost_bytes;
  uint64_t no_storage;  // events of threads that the kernel had no memory for
  uint64_t left_out;
  struct Meter meters[kMeters];
};

#ifdef __cplusplus
}  // namespace culprit::record
#endif
#endif  // CULPRIT_RECORD_BPF_RECORDS_H_
