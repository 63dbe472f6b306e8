// SPDX-License-Identifier: Apache-2.0
//
// PerfettoFacts: what a Perfetto trace says, collected in the order of its
// packets, which is none in particular, then fed to the Assembler in order of
// time. What only the order tells is filled in there: who ran on a CPU (compact
// switches and wakings do not say), which interrupt a waking came from, which
// switch a stack taken by the profiler at sched_switch belongs to.
//
// Memory: 56 bytes a fact beside the names, for the whole trace. One thread at
// a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/string_table.h"
#include "import/event_format.h"
#include "import/trace_mark.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

struct PerfettoFact {
  enum class Kind : uint8_t {
    //              tid      a          b           text
    kName,          // who   pid        -           name
    kProcess,       // -     pid        text's id   name; b: the command line
    kSwitch,        // prev  next       prev_state  -
    kWaking,        // waker wakee      flags       -
    kWakeup,        // the same, used if there is no waking at all
    kWakeupNew,     // the same
    kFork,          // paren child      pid         -
    kExit,          // who   -          -           -
    kEnter,         // who   number     -           -
    kReturn,        // who   number     result      -
    kIssue,         // who   sector     bytes       device; flags: operation
    kComplete,      // -     sector     bytes       device; flags: operation
    kIrqEntry,      // -     -          -           handler
    kIrqExit,       //
    kSoftirqEntry,  // -     vector     -           -
    kSoftirqExit,   //
    kMark,          // who   -          -           the mark's text
    kSliceBegin,    // who   -          -           name
    kSliceEnd,      // who   -          -           name or none
    kInstance,      // who   end_ns     -           scenario
    kSample,        // who   -          period_ns   -
    kSwitchSample,  // who was switched out
  };
  static constexpr int32_t kRunningThread = -2;  // whoever ran on that CPU

  int64_t time_ns = 0;
  int64_t a = 0;
  int64_t b = 0;
  int32_t tid = -1;
  StringId text;
  trace::StackId stack;
  uint64_t offset = 0;
  uint16_t cpu = assemble::kNoCpu;
  Kind kind = Kind::kName;
  uint8_t flags = 0;
};
static_assert(sizeof(PerfettoFact) <= 56);

class PerfettoFacts {
 public:
  void Add(const PerfettoFact& fact);
  StringId Text(std::string_view text) { return texts_.Intern(text); }
  // A thread's name as an event had it; only a changed one becomes a fact.
  void AddName(int64_t time_ns, int32_t tid, int64_t pid, std::string_view name);
  void set_states(const TaskStates& states) { states_ = states; }
  bool empty() const { return facts_.empty(); }
  size_t size() const { return facts_.size(); }
  int64_t last_ns() const { return last_ns_; }

  // Empties this object.
  Status Feed(assemble::Assembler& assembler, Diagnostics& diagnostics);

 private:
  struct CpuState {
    int32_t running = -1;
    StringId irq;
    int64_t softirq = -1;
  };

  using SwitchesOf = std::unordered_map<int32_t, std::vector<size_t>>;  // by thread, by time

  void FillRunning();
  int64_t SampleSkew(const std::vector<size_t>& samples, const SwitchesOf& switches) const;
  void JoinSwitchStacks(Diagnostics& diagnostics);
  Status FeedOne(const PerfettoFact& fact, assemble::Assembler& assembler, TraceMarks& marks);
  Status FeedSwitch(const PerfettoFact& fact, assemble::Assembler& assembler);
  Status FeedWaking(const PerfettoFact& fact, assemble::Assembler& assembler);
  Status FeedBlock(const PerfettoFact& fact, assemble::Assembler& assembler);
  CpuState& Cpu(uint16_t cpu);

  std::vector<PerfettoFact> facts_;
  StringTable texts_;
  TaskStates states_;
  std::unordered_map<int32_t, std::pair<StringId, int64_t>> names_;
  std::unordered_set<int32_t> active_;
  std::unordered_map<int32_t, int64_t> forked_;
  std::vector<CpuState> cpus_;
  bool any_waking_ = false;
  bool any_switch_ = false;
  int64_t last_ns_ = INT64_MIN;
};

}  // namespace culprit::import_
