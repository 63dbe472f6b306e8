// SPDX-License-Identifier: Apache-2.0
//
// TracepointText: kernel events as text ("sched_switch", "prev_comm=a
// prev_pid=7 ..."), fed to an Assembler. perf script, ftrace and trace-cmd
// print the same payloads around different line heads; this is what they share:
// switches, wake-ups, thread life cycle, system calls, block I/O, trace marks.
// Both the long form (key=value) and the short one of older tools
// ("bash:12 [120] S ==> ls:13 [120]") are read.
//
// sched_wakeup counts only where the trace has no sched_waking at all, which
// the caller must know beforehand. Memory: one name a live thread, one byte a
// frame, and open marks (trace_mark.h). One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/result.h"
#include "import/trace_mark.h"
#include "trace/syscall_operation.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

struct TextEvent {
  int64_t time_ns = 0;
  uint16_t cpu = assemble::kNoCpu;
  int64_t pid = assemble::kNoTid;  // of the process, where the line says
  int64_t tid = assemble::kNoTid;
  std::string_view comm = {};  // empty: the line does not say
  std::string_view name = {};  // without its subsystem: "sched_switch"
  std::string_view payload = {};
  // common_flags of the record (kernel_stacks.h); nothing: the tool prints none,
  // and only a stack can tell of interrupts.
  std::optional<uint64_t> flags = {};
  std::string_view device = {};            // of the interrupt it happened in, if known
  uint64_t offset = 0;                     // where it stood in the input
  std::vector<trace::FrameId> stack = {};  // leaf first
};

struct TracepointOptions {
  bool wakeups_wake = false;  // there is no sched_waking: sched_wakeup stands in
  // A recording of some processes only: of others it tells nothing, so they
  // neither switch in nor get woken. Null: it tells of all threads.
  std::shared_ptr<const std::unordered_set<int64_t>> recorded = {};
  trace::SyscallAbi arch = trace::SyscallAbi::kX86_64;  // for events that name the call
  bool arch_known = false;                              // else it is a guess
};

class TracepointText {
 public:
  TracepointText(trace::TraceWriter& writer, assemble::Assembler& assembler,
                 Diagnostics& diagnostics, TracepointOptions options)
      : dictionary_(writer.dictionary()),
        assembler_(assembler),
        diagnostics_(diagnostics),
        options_(std::move(options)),
        marks_(assembler, diagnostics) {}

  // An event that is not used, or whose payload cannot be read, is counted.
  Status Feed(const TextEvent& event);
  // The thread is called so; cheap when nothing changed.
  void Name(int64_t pid, int64_t tid, std::string_view comm);
  // The stack of frames that stand leaf first, of `count` from the leaf; leaf
  // frames of the tracer itself are left out.
  trace::StackId Stack(const std::vector<trace::FrameId>& frames, size_t count = SIZE_MAX);

 private:
  Result<bool> Dispatch(const TextEvent& event);
  Result<bool> Sched(const TextEvent& event);
  Result<bool> Switch(const TextEvent& event);
  Result<bool> Waking(const TextEvent& event);
  Result<bool> LifeCycle(const TextEvent& event);
  Result<bool> Syscall(const TextEvent& event);
  int64_t WithArguments(int64_t number, std::string_view text) const;
  Result<bool> NamedSyscall(const TextEvent& event, std::string_view call, bool enter,
                            int64_t result);
  Result<bool> Block(const TextEvent& event);
  Result<bool> Print(const TextEvent& event);
  bool IsRecorded(int64_t tid) const;
  uint8_t Traits(trace::FrameId frame);
  uint64_t FlagsOfStack(const TextEvent& event);
  Result<bool> Done(const Status& status);
  Result<bool> Malformed(const TextEvent& event);

  trace::Dictionary& dictionary_;
  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  TracepointOptions options_;
  TraceMarks marks_;
  std::unordered_map<int64_t, std::pair<int64_t, std::string>> names_;  // tid: pid, comm
  std::vector<uint8_t> traits_;  // by FrameId; kNoTraits: not looked up yet
};

// What a sched_switch says of prev_state: "R", "R+", "S", "D|W", "64".
struct PrevState {
  bool runnable = false;
  bool exiting = false;
};
PrevState ParsePrevState(std::string_view text);

}  // namespace culprit::import_
