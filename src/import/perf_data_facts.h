// SPDX-License-Identifier: Apache-2.0
//
// PerfDataFacts: records of a perf.data, in order of time, to facts for the
// Assembler. Which events matter is decided once, from the attrs: scheduler,
// system call and block tracepoints by name; of the sampled events the best
// clock (cpu-clock or task-clock, else cycles, else the first), since samples
// of several would count the same time twice. Switch records stand in where
// there is no sched_switch. Times that a recording lacks are made up from the
// sampling period, in the order of the file. Probes at a function's entry and
// return, where both were recorded (perf probe f, f%return), make calls.
//
// A recording of some processes sees only what those do: when one of them gives
// its CPU to a stranger, nothing tells when that one leaves it. Strangers then
// have no time line of their own, and the CPU is not known to be theirs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/flat_map.h"
#include "import/entry_exit_calls.h"
#include "import/importer.h"
#include "import/perf_data_sample.h"
#include "import/perf_data_session.h"
#include "import/perf_data_stacks.h"
#include "import/tracepoint_table.h"

namespace culprit::import_ {

class PerfDataFacts {
 public:
  // All outlive this object. The session is complete.
  PerfDataFacts(const PerfSession& session, const ImportOptions& options,
                trace::TraceWriter& writer, assemble::Assembler& assembler,
                Diagnostics& diagnostics);

  // A record as it comes by, before it is put into order.
  void Preview(const PerfRecordView& record);
  Status Feed(uint64_t time, const PerfRecordView& record);
  // Ends the calls that are open, and counts what was left out.
  Status Finish();
  uint64_t samples() const { return samples_; }

 private:
  using Kind = TracepointFacts::Kind;
  enum class Role : uint8_t {
    kUnused,
    kRunning,      // samples of a clock
    kRuntime,      // sched_stat_runtime: running time by the event's own account
    kSwitchStack,  // a stack at switch-out without its record
    kTracepoint,
    kFunctionEntry,
    kFunctionReturn,
  };
  struct Event {
    Role role = Role::kUnused;
    Kind kind = Kind::kUnused;
    int64_t period_ns = 0;
    bool period_is_ns = false;
    std::array<const EventField*, 5> fields = {};
    const EventField* flags = nullptr;
    const EventField* target_cpu = nullptr;
    uint64_t unused = 0;
  };
  struct Known {
    int64_t pid = -1;
    size_t name_hash = 0;
    std::array<char, 16> comm = {};  // the array that the name was last read from
  };
  struct Moment {
    int64_t time_ns = 0;
    uint16_t cpu = assemble::kNoCpu;
    int64_t tid = assemble::kNoTid;
    PerfChain chain;
  };

  void Plan(const ImportOptions& options);
  void PlanTracepoint(const PerfAttr& attr, Event& event);
  void PlanProbes();
  void PlanClock(const ImportOptions& options);
  void DropDoubles();

  Status Sample(uint64_t time, const PerfRecordView& record);
  Status Tracepoint(const Event& event, std::string_view raw, const Moment& moment);
  Status Probe(const Event& event, std::string_view raw, const Moment& moment);
  trace::StackId FunctionOn(trace::StackId caller, int64_t pid, uint64_t address);
  Status Switch(const Event& event, const RecordView& view, const Moment& moment);
  Status Waking(const Event& event, const RecordView& view, const Moment& moment);
  Status Block(const Event& event, const RecordView& view, const Moment& moment);
  Status Running(const Event& event, const PerfSample& sample, const Moment& moment);
  Status SwitchRecord(int64_t time_ns, const PerfRecordView& record, const PerfSample& id);
  void Mmap(const PerfRecordView& record);
  void Comm(const PerfRecordView& record);
  void Fork(int64_t time_ns, bool timed, const PerfRecordView& record);
  void Exit(int64_t time_ns, bool timed, const PerfRecordView& record);
  void Ksymbol(const PerfRecordView& record);
  void Lost(const PerfRecordView& record);
  // False for threads of which the recording does not tell.
  bool IsRecorded(int64_t tid) const;
  void Belongs(int64_t pid, int64_t tid);
  void Name(int64_t tid, std::string_view name);
  void NameOf(int64_t tid, const RecordView& view, const EventField* comm);
  int64_t TimeOf(uint64_t time) const;

  const PerfSession& session_;
  trace::TraceWriter& writer_;
  assemble::Assembler& assembler_;
  Diagnostics& diagnostics_;
  ByteOrder order_;
  std::optional<trace::SyscallAbi> abi_;
  PerfStacks stacks_;
  EntryExitCalls calls_;
  TaskStates states_;
  std::vector<Event> events_;    // by attr
  bool switch_records_ = false;  // SWITCH records are the only switches
  bool fork_records_ = false;
  bool call_exits_ = false;  // exits of system calls were recorded
  bool timeless_ = false;    // samples have no time
  bool partial_ = false;     // only some processes were recorded
  int64_t made_up_ns_ = 0;
  int64_t last_probe_ns_ = 0;
  uint64_t samples_ = 0;
  FlatMap<int64_t, Known> threads_;
  std::unordered_map<int64_t, trace::StackId> switch_stacks_;  // by tid, until its switch
  std::unordered_map<uint64_t, std::string> deferred_;         // user chains by cookie
  size_t deferred_bytes_ = 0;
  std::unordered_map<uint64_t, std::string> cgroups_;
  std::unordered_map<int64_t, uint64_t> cgroup_of_;  // by pid
};

}  // namespace culprit::import_
