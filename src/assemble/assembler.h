// SPDX-License-Identifier: Apache-2.0
//
// Assembler: from what tracers record (a switch, a waking, a sample, a system
// call's entry and exit) to the events of the model (event.h), which tile every
// thread's life. The one place that knows the traps of scheduler traces, shared
// by all importers and by the recorder:
//
//  - a preempted thread did not wait; a thread woken before its switch-out was
//    recorded waited for no time, and still waited;
//  - a wake-up from interrupt context or by the idle task is the device's, not
//    the interrupted thread's;
//  - recordings have holes: a thread seen running on a CPU believed idle or
//    busy with another switched in unseen (kInferred), its waker is lost;
//  - a wait still open at the end has no waker (kWakerUnknown);
//  - thread ids are reused: a thread is ⟨tid, start⟩;
//  - samples share out on-CPU spans; without switches they are events of their
//    period. Until the first switch samples are held back, kMaxHeldSamples of
//    them; a trace without a switch by then counts as one without switches, and
//    later switches are only counted.
//
// Facts come in order of time. A fact earlier than one before it is moved to
// that one's time and counted. Events go to the writer as they become complete,
// so memory is the state of live threads. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/diagnostics.h"
#include "base/result.h"
#include "trace/trace_writer.h"

namespace culprit::assemble {

inline constexpr int64_t kNoTid = -1;
inline constexpr uint16_t kNoCpu = trace::Event::kNoCpu;
inline constexpr size_t kMaxHeldSamples = 1 << 20;

enum class WakeContext : uint8_t {
  kUnknown,    // decided from the waker: the idle task is never a waker
  kThread,     // the waker itself did it
  kInterrupt,  // an interrupt did; the waker is a bystander
};

struct SwitchFact {
  int64_t time_ns = 0;
  uint16_t cpu = kNoCpu;
  int64_t prev_tid = kNoTid;       // 0: the idle task; kNoTid: not known
  int64_t next_tid = kNoTid;       // the same
  bool prev_runnable = false;      // preempted, not waiting
  bool prev_exiting = false;       // it will not come back
  trace::StackId prev_stack = {};  // of prev at the switch
};

struct WakingFact {
  int64_t time_ns = 0;
  uint16_t cpu = kNoCpu;  // where the waker ran
  int64_t waker_tid = kNoTid;
  int64_t wakee_tid = kNoTid;
  WakeContext context = WakeContext::kUnknown;
  std::string_view device = {};  // "disk", "net", "timer", ... where the tracer or stack tells
  trace::StackId stack = {};     // of the waker; of the interrupt alone if it was one
  uint16_t target_cpu = kNoCpu;  // where the wakee will run, if the tracer tells
};

struct SampleFact {
  int64_t time_ns = 0;
  uint16_t cpu = kNoCpu;
  int64_t tid = kNoTid;
  int64_t period_ns = 0;  // 0: the trace's sampling period
  trace::StackId stack = {};
};

struct BlockFact {
  int64_t time_ns = 0;
  std::string_view device = {};  // "8:0", "sda"
  uint64_t sector = 0;
  int64_t bytes = 0;
  int64_t operation = 0;  // 0 read, 1 write, 2 flush, 3 discard
  int64_t tid = kNoTid;   // who issued it
  trace::StackId stack = {};
};

class Assembler {
 public:
  // The writer outlives the assembler; metadata (source, clock, cpus, ...) that
  // the assembler cannot know is the caller's to set.
  explicit Assembler(trace::TraceWriter& writer);
  ~Assembler();

  // The row of a tid as of now, made on first mention. Never none().
  trace::ThreadId ThreadOf(int64_t tid);

  // Life cycle. Names may come at any time; the last one stays. A process that
  // is only known by its threads has the pid of the first.
  void Name(int64_t pid, int64_t tid, std::string_view name);
  void ProcessName(int64_t pid, std::string_view name, std::string_view command_line = {});
  void Cgroup(int64_t pid, std::string_view cgroup);
  void Fork(int64_t time_ns, int64_t parent_tid, int64_t pid, int64_t tid);
  void Exit(int64_t time_ns, int64_t tid);
  void Kind(int64_t tid, trace::ThreadKind kind);

  Status Switch(const SwitchFact& fact);
  Status Waking(const WakingFact& fact);
  Status Sample(const SampleFact& fact);
  Status SyscallEnter(int64_t time_ns, uint16_t cpu, int64_t tid, int64_t number,
                      trace::StackId stack = {});
  Status SyscallExit(int64_t time_ns, uint16_t cpu, int64_t tid, int64_t number, int64_t result);
  // A call whose entry and duration the tracer already joined (strace -T).
  Status Syscall(int64_t time_ns, int64_t dur_ns, int64_t tid, int64_t number, int64_t result,
                 trace::StackId stack = {});
  Status BlockIssue(const BlockFact& fact);
  Status BlockComplete(const BlockFact& fact);
  // Nested slices of a thread: trace marks, function entry and exit. The name
  // of an end may be empty: it ends the innermost.
  Status SliceBegin(int64_t time_ns, int64_t tid, std::string_view name);
  Status SliceEnd(int64_t time_ns, int64_t tid, std::string_view name = {});
  // Instances known as such.
  void Instance(std::string_view scenario, int64_t tid, int64_t t0_ns, int64_t t1_ns);

  // Closes what is open at `end_ns` (0: the last fact) and fills begin, end, cpus
  // (if 0), has_switches and has_wakers of the metadata. Does not finish the
  // writer.
  Status Finish(int64_t end_ns = 0);

  const Diagnostics& diagnostics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::assemble
