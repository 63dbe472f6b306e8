// SPDX-License-Identifier: Apache-2.0
//
// BpfRecording: everything between the kernel programs and the events of a
// trace: engine, life events, stacks, decoder, assembler. Tick() moves what has
// come; between ticks the kernel's ring holds it. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "assemble/event_target.h"
#include "assemble/fused_assembler.h"
#include "base/diagnostics.h"
#include "base/result.h"
#include "record/bpf_engine.h"
#include "record/breather.h"
#include "record/decoder.h"
#include "record/function_calls.h"
#include "record/life_events.h"
#include "record/stack_table.h"
#include "record/target.h"
#include "record/unwind_feed.h"

namespace culprit::record {

struct BpfRecordingOptions {
  RecordTarget target = {};
  EngineOptions engine = {};
  std::string program = {};  // about to be executed; empty: none
  std::vector<InstanceProbe> probes = {};
  std::optional<FunctionRuntime> functions = {};
  double budget = 0;  // 0: no bound
  size_t max_stacks = StackTable::kMaxStacks;
  int64_t warm_up_ns = 150'000'000;  // for the first unwind tables; what is not ready then follows
};

class BpfRecording {
 public:
  // Everything is in place, nothing is recorded yet. `extra_pid` is recorded
  // too (0: none): the command that waits to be let go.
  static Result<std::unique_ptr<BpfRecording>> Prepare(const BpfRecordingOptions& options,
                                                       int64_t extra_pid,
                                                       assemble::EventTarget& target);
  ~BpfRecording();

  void Begin();
  Status Tick() { return Take(nullptr); }
  // A tick, unless it is better to wait for more: each takes the caches of a CPU from
  // those recorded, and finds its own cold.
  Status TickIfDue();
  // As the engine's.
  Status Pause();
  Status Resume();
  // Ends the recording and closes all events.
  Status End();
  // Brings in the state of all threads, so that EndCopy can close them. The
  // recording goes on.
  Status Snapshot();
  // Closes all events as of the last Snapshot(): for a copy of this process that
  // writes them and ends.
  Status EndCopy();
  // What goes on as of the last Snapshot(): the tiles that EndCopy would add, cut
  // at end_ns. The recording goes on.
  std::vector<trace::Event> OpenTiles(int64_t end_ns) { return line_->decoder->OpenTiles(end_ns); }
  // The recording goes on without the snapshot.
  void ForgetSnapshot();

  // Held around a fork of this process.
  std::unique_lock<std::mutex> PauseUnwinding();
  // What the unwind tables took, and what came of them.
  UnwindStats unwind_stats();

  // From now on everything is told to this target as well, with names that begin anew; from
  // UseOther on only to it. So a recording that never ends needs no more memory than what it
  // tells in a time takes. Not where functions are recorded.
  bool MayBeginOther() const { return other_ == nullptr && !function_probes_; }
  void BeginOther(assemble::EventTarget& target);
  void UseOther();

  Status Note(std::string_view text);
  Status Mark(int64_t time_ns, int64_t pid, int64_t tid, std::string_view text);

  BpfEngine& engine() { return *engine_; }
  Seen TakeSeen();
  StackCounts stack_counts() const;
  uint64_t waits() const { return former_waits_ + line_->assembler->waits(); }
  int64_t begin_ns() const { return begin_ns_; }
  int64_t end_ns() const { return end_ns_; }
  // All that was odd; after End().
  Diagnostics TakeDiagnostics();

 private:
  // The way from records to the events of a target.
  struct Line {
    assemble::EventTarget* target = nullptr;
    Diagnostics diagnostics;
    std::unique_ptr<StackTable> stacks;
    std::unique_ptr<assemble::FusedAssembler> assembler;
    std::unique_ptr<Decoder> decoder;
  };

  BpfRecording() = default;
  std::unique_ptr<Line> MakeLine(assemble::EventTarget& target, std::string_view kallsyms) const;
  void BeginLine(Line& line, int64_t begin_ns);
  template <class Visitor>
  Status ForEachLine(Visitor visitor);
  void ScanAllTargets(std::vector<int64_t> pids);
  Status FindProbes();
  Status TakeFunctions(bool all);
  Status JoinCgroups();
  // All that is in the ring by now.
  Status Take(Breather* breather);
  bool IsUrgent() const;
  void TakeLife();
  void RenameStacksIfFull();
  Status StartUnwinding(const std::vector<int64_t>& pids, int64_t starting_pid);

  BpfRecordingOptions options_;
  std::unique_ptr<BpfEngine> engine_;
  std::unique_ptr<UnwindFeed> unwind_;  // null: by frame pointers
  std::unique_ptr<LifeEvents> life_;
  std::unique_ptr<Line> line_;
  std::unique_ptr<Line> other_;  // begun later
  // What lines told that are no more, less what this one had told until then.
  uint64_t former_waits_ = 0;
  StackCounts former_stacks_ = {};
  std::optional<TraceEventProbes> event_probes_;
  std::optional<FunctionProbes> function_probes_;
  std::optional<FunctionCalls> function_calls_;
  std::set<int64_t> members_;  // of the cgroups, as far as they are recorded
  int64_t joined_ns_ = 0;
  std::vector<ProcessEntry> processes_;
  Diagnostics diagnostics_;
  std::string batch_;
  std::vector<LifeEvent> early_life_;  // of records that are still in the ring
  int64_t ticked_ns_ = 0;
  Breather breather_{[this] { return IsUrgent(); }};
  int64_t begin_ns_ = 0;
  int64_t end_ns_ = 0;
};

}  // namespace culprit::record
