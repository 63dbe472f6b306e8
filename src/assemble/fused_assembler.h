// SPDX-License-Identifier: Apache-2.0
//
// FusedAssembler: the model's events from records that tell a whole time off the
// CPU at once (lost the CPU, was woken by whom, got a CPU again), as the
// recorder's kernel programs make them. The same tiles as the Assembler's, but
// no order between threads is asked for: only the records of one thread come in
// the order in which they happened.
//
// Invariants, for any facts whatsoever: the tiles of a thread abut, from the
// recording's begin or the thread's start to its end; if the times of the facts
// are true, running tiles of a CPU do not overlap. A record that does not fit the
// one before it is moved to fit and counted. A switch-out that is missing (some
// kernels hide those of protected processes) was when another thread is known to
// have got that CPU, at the latest.
//
// Time that no record tells (short waits left out, records lost) comes summed up
// as LeftOut: running, waiting and ready, each a tile of the right length but of
// unknown place, marked kInferred, running tiles without a CPU. So sums per thread
// stay exact. Their waits (IsSumOfWaits) have the stack of the one that stands for them,
// or kLeftOutFunction alone if there is none.
//
// Samples are held until the record that follows. Memory is the state of live
// threads. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assemble/assembler.h"
#include "assemble/event_sink.h"
#include "assemble/event_target.h"
#include "assemble/open_work.h"
#include "assemble/thread_table.h"

namespace culprit::assemble {

inline constexpr std::string_view kLeftOutFunction = "[waits left out]";

struct WakeFact {
  int64_t time_ns = 0;  // before out_ns: the wait had no length
  int64_t waker_tid = kNoTid;
  WakeContext context = WakeContext::kUnknown;
  std::string_view device = {};
  trace::StackId stack = {};
  uint16_t cpu = kNoCpu;
};

struct OffCpuFact {
  int64_t tid = kNoTid;
  int64_t out_ns = 0;  // lost the CPU
  int64_t in_ns = 0;   // got one again; for an open one: when this was seen
  uint16_t in_cpu = kNoCpu;
  uint16_t out_cpu = kNoCpu;
  bool runnable = false;     // preempted: it did not wait
  bool is_new = false;       // its first time: ready since its start
  bool since_begin = false;  // it was off the CPU before the recording began
  bool out_lost = false;     // out_ns is not known: the last switch-in
  std::optional<WakeFact> wake = {};
  int64_t holder_tid = kNoTid;  // who had the CPU it was ready for
  trace::StackId stack = {};
};

struct LeftOutFact {
  int64_t tid = kNoTid;
  int64_t end_ns = 0;
  int64_t run_ns = 0;
  int64_t wait_ns = 0;
  int64_t ready_ns = 0;
  uint64_t count = 0;
  uint64_t waits = 0;         // of these
  uint16_t cpu = kNoCpu;      // where it runs from here on
  trace::StackId stack = {};  // of a wait that stands for the others
};

struct RequestFact {
  int64_t issue_ns = 0;
  int64_t dur_ns = 0;
  std::string_view device = {};
  int64_t bytes = 0;
  int64_t operation = 0;  // as in BlockFact
  int64_t tid = kNoTid;
  trace::StackId stack = {};
};

class FusedAssembler {
 public:
  // The target outlives the assembler. Nothing before begin_ns is told.
  FusedAssembler(EventTarget& target, int64_t begin_ns);

  // Life cycle, from another source, so at about the right time only.
  void Name(int64_t pid, int64_t tid, std::string_view name) { threads_.Name(pid, tid, name); }
  void ProcessName(int64_t pid, std::string_view name, std::string_view command_line = {}) {
    threads_.ProcessName(pid, name, command_line);
  }
  void Cgroup(int64_t pid, std::string_view cgroup) { threads_.Cgroup(pid, cgroup); }
  void Kind(int64_t tid, trace::ThreadKind kind);
  void Fork(int64_t time_ns, int64_t parent_tid, int64_t pid, int64_t tid);
  void Exit(int64_t time_ns, int64_t tid);
  bool Knows(int64_t tid) { return threads_.Find(tid) != nullptr; }

  Status OffCpu(const OffCpuFact& fact);
  Status LeftOut(const LeftOutFact& fact);
  Status Sample(int64_t time_ns, uint16_t cpu, int64_t tid, trace::StackId stack);
  // Its last switch-out.
  Status Gone(int64_t time_ns, int64_t tid);
  Status Syscall(int64_t enter_ns, int64_t exit_ns, uint16_t cpu, int64_t tid, int64_t number,
                 int64_t result, trace::StackId stack, uint8_t flags = 0);
  // A call of a function, the stack's leaf.
  Status Call(int64_t enter_ns, int64_t exit_ns, int64_t tid, trace::StackId stack,
              uint8_t flags = 0);
  Status Request(const RequestFact& fact);
  Status SliceBegin(int64_t time_ns, int64_t tid, std::string_view name);
  Status SliceEnd(int64_t time_ns, int64_t tid, std::string_view name = {});
  void Instance(std::string_view scenario, int64_t tid, int64_t t0_ns, int64_t t1_ns);
  // A marker of no thread's: what the recorder did to itself.
  Status Note(int64_t time_ns, std::string_view name);

  // Off the CPU at the end; its in_ns is the end.
  Status Open(const OffCpuFact& fact);
  // On a CPU at the end, and not told before: since `since_ns`.
  Status OpenRunning(int64_t tid, int64_t since_ns, uint16_t cpu);
  // The tiles that the two would make, with nothing changed but rows for threads
  // that were not told of before.
  void Peek(const OffCpuFact& fact, std::vector<trace::Event>& tiles);
  void PeekRunning(int64_t tid, int64_t since_ns, int64_t end_ns, std::vector<trace::Event>& tiles);
  // Closes all tiles and fills begin, end, cpus, has_switches, has_wakers.
  Status Finish(int64_t end_ns);

  const Diagnostics& diagnostics() const { return diagnostics_; }
  uint64_t waits() const { return waits_; }

 private:
  // Who was last seen to get a CPU, and when that happened before: records of
  // different threads come out of order, by much where one waits for its stack.
  struct Seat {
    int64_t tid = kNoTid;
    int64_t since_ns = INT64_MIN;
    std::vector<int64_t> taken_ns = {};  // ascending, the latest few thousand

    void Take(int64_t time_ns);
    // The first time after; 0 if there is none.
    int64_t TakenAfter(int64_t time_ns) const;
  };
  struct Ended {
    trace::ThreadId id;
    int64_t end_ns;
  };

  LiveThread& Begin(int64_t tid, int64_t time_ns, uint16_t cpu);
  void BeginSampled(LiveThread& thread);
  trace::ThreadId ThreadAt(int64_t tid, int64_t time_ns);
  void RunUntil(LiveThread& thread, int64_t time_ns);
  void RunHeld(LiveThread& thread, size_t count, int64_t end_ns, uint8_t flags);
  void SpreadRun(LiveThread& thread, int64_t run_ns);
  static void Hold(LiveThread& thread, std::span<const HeldStack> samples);
  static std::vector<HeldStack> TakeSamplesAfter(LiveThread& thread, int64_t time_ns);
  void Tile(LiveThread& thread, trace::EventKind kind, int64_t end_ns, trace::ThreadId peer,
            trace::StackId stack, uint8_t flags, int64_t sum_of = 0);
  int64_t Prepare(LiveThread& thread, const OffCpuFact& fact);
  WakeUp Waker(const WakeFact& fact, int64_t time_ns);
  void Pause(LiveThread& thread, const OffCpuFact& fact, uint8_t open_flags);
  void CloseRunning(LiveThread& thread, int64_t end_ns);
  void End(LiveThread& thread, int64_t time_ns);
  void SeenCpu(uint16_t cpu);
  void Sit(LiveThread& thread, uint16_t cpu, int64_t time_ns);

  EventSink sink_;
  ThreadTable threads_;
  OpenWork open_work_;
  int64_t begin_ns_;
  std::vector<Seat> seats_;  // by CPU
  uint64_t waits_ = 0;
  bool has_wakers_ = false;
  // Threads that ended a short while ago: records may still speak of them.
  std::unordered_map<int64_t, Ended> ended_;
  std::multimap<int64_t, int64_t> ended_order_;
  Diagnostics diagnostics_;
};

}  // namespace culprit::assemble
