// SPDX-License-Identifier: Apache-2.0
//
// BpfEngine: the kernel programs of the recorder (bpf/engine.bpf.c), loaded,
// attached and steered. They are gone when this object is, or when the process
// ends in whatever way: nothing is pinned. Records come by Drain(); what they
// mean is in bpf/records.h. One thread at a time.
//
// Needs a kernel with BTF (5.15 or newer) and CAP_BPF + CAP_PERFMON, and a
// build with clang, bpftool and libbpf (cmake/bpf.cmake).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/bpf/records.h"
#include "record/instance_probes.h"
#include "record/program_choice.h"
#include "record/unwind_maps.h"

namespace culprit::record {

struct EngineOptions {
  bool whole_system = false;
  std::vector<std::string> names = {};  // of programs; whoever becomes one is recorded
  bool syscalls = false;
  // Nothing but system calls, and these only as counts (ReadCallCounts).
  bool count_calls = false;
  bool marks = false;
  bool blocks = true;
  uint64_t ring_bytes = uint64_t{16} << 20;
  int64_t sample_period_ns = 1'000'000;  // 0: no samples
  std::vector<AddressRange> irq_entries = {};
  std::vector<ProbeSite> probes = {};
  bool unwind_tables = true;    // else user stacks are walked by frame pointers
  bool compare_stacks = false;  // by both, and counted: for tests
  bool remember_stacks = true;  // else each is walked anew: for measuring
  bool prove_chains = true;     // else frame pointers are not relied on where tables are: for tests
  bool direct_reads = true;     // of the kernel's stacks, where it can; else by calls: for tests
  bool resumes = true;          // user stacks at the end of a switch, where it can: for tests
};

struct EngineCounters {
  // How often programs of a kind ran.
  uint64_t Runs(MeterKind kind) const {
    return total.meters[kind].timed * kTimedRun + total.untimed[kind];
  }

  Counters total = {};
  std::vector<uint64_t> lost_records;  // by CPU
};

struct CountedCalls {
  CallKey key = {};
  CallCount count = {};
};

class BpfEngine {
 public:
  // Was the program built with it?
  static bool Built();
  // Loaded and attached; nothing is recorded before Begin().
  static Result<std::unique_ptr<BpfEngine>> Start(const EngineOptions& options);
  ~BpfEngine();

  Status AddTarget(int64_t pid);
  // Makes room for what is known of each of their threads. When all are added.
  Status PrepareThreads();
  // The recording is [begin_ns, end_ns) of CLOCK_MONOTONIC.
  void Begin(int64_t begin_ns);
  void End(int64_t end_ns);

  // In a pause no switch, wait or system call is looked at, and nothing of that
  // costs anything; what threads did is known as sums (bpf/pauses.h), told at its
  // begin, whenever TellPause() is called, and as threads are met after it.
  Status Pause();
  Status TellPause();
  // `now_ns` is asked when all programs are attached again.
  Status Resume(const std::function<int64_t()>& now_ns);

  // Begin, end, pauses and epoch of `policy` are ignored. Takes effect at once.
  Status SetPolicy(const Policy& policy);
  Policy policy() const;
  // All stacks that are met from now on are told again, under other names.
  void RenameStacks();
  Status SetSamplePeriod(int64_t period_ns);

  // Visits every record that is in the ring. The bytes are those of the ring:
  // valid during the call.
  void Drain(const std::function<void(std::string_view)>& visitor);
  // Makes an OpenRecord of every recorded thread.
  Status TellOpen();

  // All calls that have returned so far, in no order.
  std::vector<CountedCalls> ReadCallCounts() const;

  // Of the stack walker; without tables all descriptors are -1.
  UnwindMapFds unwind_maps() const;
  UnwindCounters ReadUnwindCounters() const;

  EngineCounters ReadCounters() const;
  // CPU time of the programs so far, with what it takes to call them.
  uint64_t KernelTimeNs() const;
  // How much of the ring waits to be read, 0 to 1.
  double ring_fill() const;
  // Is there a program that sees writes to trace_marker?
  bool has_marks() const;
  const ProgramChoice& programs() const;  // those that run

 private:
  struct State;
  explicit BpfEngine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record
