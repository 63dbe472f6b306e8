// SPDX-License-Identifier: Apache-2.0
//
// WaitClass: what a wait was for, from the kernel's leaf frames or, where there
// are none, from the user frames (SPEC §2). Kernel frames alone cannot tell a
// request from a reply (all are epoll, poll, select): the waker can, so the
// class is refined by who ended the wait. The table of frames is one data
// table, wait_class_table.cc.
//
// WaitPurpose is the same question asked for idleness (auto_instances.h): a
// futex is a lock by class, but whether a thread waits there for a lock or for
// work is told by the library function that called it, if anything does.
//
// Tables are made once per dictionary, immutable, read by any number of threads; a
// StackClassifier makes only the rows that are asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "waitgraph/timelines.h"

namespace culprit::waitgraph {

enum class WaitClass : uint8_t {
  kOther = 0,
  kLock,
  kDisk,
  kFault,
  kNet,
  kIpc,
  kRequest,  // waiting to be asked: only a thread's idle wait is this
  kTimer,
  kChild,
  kMemory,
  kSignal,
};
inline constexpr size_t kWaitClasses = 11;
inline constexpr std::array<std::string_view, kWaitClasses> kWaitClassNames = {
    "other",   "lock",  "disk",  "fault",  "net",   "ipc",
    "request", "timer", "child", "memory", "signal"};

constexpr std::string_view Name(WaitClass c) { return kWaitClassNames[static_cast<size_t>(c)]; }

enum class WaitPurpose : uint8_t {
  kUnknown = 0,  // nothing in the stack says
  kWork,         // part of some work: a mutex, the disk, a child process
  kStall,        // memory: a page fault, reclaim; may happen anywhere
  kReacquire,    // the mutex of a condition variable, after the condition came true
  kSync,         // a futex or event that may be a lock or a condition
  kCondition,    // a condition variable, a semaphore, a parked worker
  kExternal,     // something from outside: a socket, a pipe, a signal, input
  kTimer,        // a time
};

// The classes of all stacks of a dictionary, by stack id: one pass over the
// stack trie, O(stacks). `ambiguous` marks the poll family (epoll, poll,
// select, ppoll, recv on a socket ...) whose class needs the waker.
struct StackClasses {
  std::vector<WaitClass> by_stack;
  std::vector<bool> ambiguous;
  std::vector<WaitPurpose> purpose;
  std::vector<bool> sends_too;    // its waiting call also sends (binder, ALPC)
  std::vector<WaitClass> wakes;   // as a waker's stack: what it ended a wait with
  std::vector<bool> tells_waker;  // `wakes` holds
  std::vector<bool> releases;     // as a waker's stack: a lock is released, nothing is asked for
};
StackClasses ClassifyStacks(const trace::Dictionary& dictionary);

// One row of it.
struct StackClass {
  WaitClass wait_class = WaitClass::kOther;
  WaitPurpose purpose = WaitPurpose::kUnknown;
  WaitClass wakes = WaitClass::kOther;
  bool ambiguous = false;
  bool sends_too = false;
  bool tells_waker = false;
  bool releases = false;
};

// The same for who asks for few of the stacks: each is classified when it is first
// asked for, and its callers with it. One thread at a time; the dictionary must
// outlive it.
class StackClassifier {
 public:
  explicit StackClassifier(const trace::Dictionary& dictionary);
  ~StackClassifier();
  // `stack` must be valid.
  StackClass Of(trace::StackId stack);

 private:
  class Readings;
  std::unique_ptr<Readings> readings_;
};

// The class of one wait, refined by its waker: its thread and, where known, the
// stack of the unwait that ended it (none: unknown).
WaitClass ClassifyWait(const trace::Dictionary& dictionary, const StackClasses& classes,
                       const trace::Event& wait, trace::StackId waker_stack);
WaitClass ClassifyWait(const trace::Dictionary& dictionary, StackClassifier& classes,
                       const trace::Event& wait, trace::StackId waker_stack);

// Whether a timer ended it, as far as the trace tells.
bool EndedByTimer(const trace::Dictionary& dictionary, const trace::Event& wait);

// What is known about every wait of a trace, by EventIndex. Waits without a
// stack are judged by the system call they happened in, where system calls
// were recorded and the architecture is known, else by their waker alone.
enum class WaitEvidence : uint8_t { kNone, kWaker, kSyscall, kStack };
struct WaitFact {
  WaitClass wait_class = WaitClass::kOther;
  WaitPurpose purpose = WaitPurpose::kUnknown;
  WaitEvidence evidence = WaitEvidence::kNone;
  uint16_t syscall = UINT16_MAX;  // evidence kSyscall: index in `syscalls`
};
struct WaitFacts {
  std::vector<WaitFact> by_event;
  std::vector<std::string_view> syscalls;  // names, in order of first use
};
WaitFacts ClassifyWaits(const Timelines& timelines, const StackClasses& classes);

}  // namespace culprit::waitgraph
