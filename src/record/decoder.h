// SPDX-License-Identifier: Apache-2.0
//
// Decoder: the records of the kernel programs and the life events beside them,
// fed to the assembler in an order in which stacks can be named and threads are
// known. It knows what /proc tells about threads that were there before, and
// asks it about those that turn up as wakers.
//
// One thread at a time; costs under a microsecond a record that repeats known
// stacks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "assemble/fused_assembler.h"
#include "base/diagnostics.h"
#include "record/bpf/records.h"
#include "record/breather.h"
#include "record/instance_probes.h"
#include "record/life_events.h"
#include "record/process_scan.h"
#include "record/stack_table.h"
#include "trace/syscall_table.h"

namespace culprit::record {

// What a trigger of the flight recorder may look at.
struct Seen {
  int64_t longest_wait_ns = 0;
  int64_t longest_wait_tid = -1;
  std::vector<std::string> marks;  // texts, since last asked
};

class Decoder {
 public:
  // All outlive the decoder.
  Decoder(assemble::FusedAssembler& assembler, StackTable& stacks, Diagnostics& diagnostics);

  // A process that already runs.
  void Know(const ProcessEntry& process);
  // Records in the order of the ring, and life events by time. `breather`: takes its steps;
  // null: at once.
  Status Feed(const std::string& records, const std::vector<LifeEvent>& life,
              Breather* breather = nullptr);
  // The scenarios of the probes, by index.
  void NameProbes(std::vector<std::string> scenarios) { scenarios_ = std::move(scenarios); }
  // Begins or ends an instance of the thread; of nested ones the outermost.
  void Probe(const ProbeHit& hit);
  // Has a record of this thread come? Only known where there are probes, or after
  // RememberRecorded().
  bool IsRecorded(int64_t tid) const { return recorded_.contains(tid); }
  void RememberRecorded() { remembers_recorded_ = true; }
  // From `culprit mark`: as if the thread had written it to trace_marker.
  Status Mark(int64_t time_ns, int64_t pid, int64_t tid, std::string_view text);

  // How the user stack of a thread that sleeps is found: its addresses, leaf first.
  // Otherwise by frame pointers.
  using SleeperWalk = std::function<std::vector<uint64_t>(const OpenRecord&)>;
  void WalkSleepersBy(SleeperWalk walk) { walk_sleeper_ = std::move(walk); }

  // The open records that have come are applied; end_ns is that of the
  // recording. Nothing may follow.
  Status Finish(int64_t end_ns);
  size_t open_records() const { return open_.size(); }
  // What they would add, while everything goes on.
  std::vector<trace::Event> OpenTiles(int64_t end_ns);
  void ForgetOpen() { open_.clear(); }

  Seen TakeSeen();

 private:
  struct OpenProbe {
    int64_t time_ns = 0;
    uint32_t depth = 0;
  };
  struct OpenMark {
    int64_t tid = -1;
    int64_t time_ns = 0;
  };

  void Apply(const LifeEvent& event);
  Status Record(std::string_view record);
  Status Dispatch(std::string_view record);
  Status Wait(const WaitRecord& record);
  assemble::OffCpuFact OffCpuOf(const WaitRecord& record, uint64_t user_stack);
  Status Block(const BlockRecord& record);
  Status Open(const OpenRecord& record, int64_t end_ns);
  uint64_t OpenUserStack(const OpenRecord& record);
  void Define(std::string_view record);
  void KnowThread(int64_t tid);
  void KnowMaps(int64_t pid);
  // arg0 of a call, from its number and the argument that tells its operation.
  int64_t CallOf(uint32_t number, uint32_t operation) const;

  assemble::FusedAssembler& assembler_;
  std::optional<trace::SyscallAbi> abi_;
  StackTable& stacks_;
  Diagnostics& diagnostics_;
  std::unordered_set<int64_t> threads_;  // with a name
  // Some of these, by the lowest bits: who is met is met again.
  std::array<int64_t, 256> met_threads_ = {};
  std::unordered_set<int64_t> mapped_;  // processes whose mappings are all known
  std::map<std::string, OpenMark> operations_;
  std::vector<std::string> scenarios_;
  bool remembers_recorded_ = false;
  std::unordered_set<int64_t> recorded_;
  std::map<std::pair<int64_t, uint64_t>, OpenProbe> probes_;  // by tid and index
  std::vector<std::string> open_;
  std::string device_;
  SleeperWalk walk_sleeper_;
  Seen seen_;
};

}  // namespace culprit::record
