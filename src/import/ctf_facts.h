// SPDX-License-Identifier: Apache-2.0
//
// CtfFacts: decoded CTF events to facts for the Assembler. Who did something is
// taken from the event's own fields where it has them (perf's, or contexts that
// the user asked LTTng for), else from who runs on the CPU by the switches seen
// so far; who ran before a CPU's first switch can be told beforehand (Running).
//
// A sched_wakeup that completes a recorded sched_waking is the same wake-up; one
// without counts itself. The kernel's prev_state changed its numbers twice; the
// release in the trace's environment decides. Of a program's own events, pairs
// of begin and end become slices; others are only counted.
//
// Memory: a row per thread id, per CPU and per open function call. One thread
// at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "import/ctf_event_table.h"
#include "import/ctf_interrupts.h"
#include "import/ctf_stacks.h"
#include "import/ctf_stream.h"
#include "import/ctf_syscalls.h"
#include "import/entry_exit_calls.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

class CtfFacts {
 public:
  // All outlive this object; `kernel` and `symbolizer` may be nullptr.
  CtfFacts(const CtfSchema& schema, trace::TraceWriter& writer, assemble::Assembler& assembler,
           const symbol::KernelSymbols* kernel, symbol::Symbolizer* symbolizer,
           Diagnostics& diagnostics);

  // The current event of `file`.
  Status Feed(const CtfStreamFile& file);
  // Who ran on a CPU before its first switch.
  void Running(uint16_t cpu, int64_t tid);
  Status Finish();

  const CtfSyscalls& syscalls() const { return syscalls_; }
  uint64_t events() const { return events_; }
  uint64_t unused() const { return unused_; }
  int64_t first_ns() const { return first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  struct Task {
    uint64_t name_hash = 0;
    int64_t pid = assemble::kNoTid;
    int64_t open_call = trace::kNoSyscall;  // for exits that do not say of what
    bool woken = false;
    bool kernel = false;
    std::string name;
  };
  struct Meaning {
    CtfEventKind kind = CtfEventKind::kUnused;
    std::string name;
    int64_t number = trace::kNoSyscall;
    bool makes_threads = false;  // clone and its kin
  };
  // One event with what all kinds need.
  struct Given {
    const Meaning& meaning;
    std::span<const CtfValue, kCtfWants> fields;
    int64_t time_ns = 0;
    int64_t pid = assemble::kNoTid;
    int64_t tid = assemble::kNoTid;
    uint16_t cpu = assemble::kNoCpu;
    uint64_t offset = 0;

    bool Has(CtfSlot slot) const { return fields[slot].seen; }
    int64_t Number(CtfSlot slot, int64_t otherwise = assemble::kNoTid) const {
      return Has(slot) ? static_cast<int64_t>(fields[slot].number) : otherwise;
    }
    std::string_view Text(CtfSlot slot) const;
  };

  void FindSlices(const CtfSchema& schema);
  Status Dispatch(const Given& given);
  Status Switch(const Given& given);
  Status Waking(const Given& given);
  void JudgeWaker(const Given& given, assemble::WakingFact& fact);
  Status SyscallEvent(const Given& given);
  Status Block(const Given& given);
  Status Sample(const Given& given);
  Status UserEvent(const Given& given);
  void Fork(const Given& given);
  void Exec(const Given& given);
  void ProcessState(const Given& given);
  void Module(const Given& given);
  void Identify(Given& given);
  void Name(int64_t pid, int64_t tid, std::string_view name);
  trace::StackId Stack(const Given& given);
  bool IsRunnable(int64_t state) const;
  bool IsDead(int64_t state) const;

  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  CtfSyscalls syscalls_;
  CtfStacks stacks_;
  EntryExitCalls calls_;
  CtfInterrupts interrupts_;
  std::vector<Meaning> meanings_;  // by event class
  std::unordered_map<int64_t, Task> tasks_;
  std::vector<int64_t> running_;  // tid by CPU
  bool has_kernel_names_;
  int kernel_release_ = 0;  // 414 for 4.14; 0: not known
  uint64_t events_ = 0;
  uint64_t unused_ = 0;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace culprit::import_
