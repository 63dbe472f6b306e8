// SPDX-License-Identifier: Apache-2.0
#include "record/bpf_recording.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "record/machine.h"
#include "record/process_scan.h"

namespace culprit::record {
namespace {

// Long enough for programs that already run on other CPUs to end.
constexpr int64_t kSettleNs = 2'000'000;

constexpr int64_t kHeardNs = 200'000;

// How often the members of cgroups are looked at.
constexpr int64_t kJoinNs = 100'000'000;
// Of the budget, and of one CPU, for those that are made later.
constexpr double kTableShare = 1.0 / 3;
// What is in the ring is read when it fills so much of it, or after that time.
constexpr double kDueFill = 0.25;
constexpr int64_t kDueNs = 250'000'000;
// What is to be done of it is done at once when it fills so much.
constexpr double kUrgentFill = 0.5;

}  // namespace

BpfRecording::~BpfRecording() = default;

Result<std::unique_ptr<BpfRecording>> BpfRecording::Prepare(const BpfRecordingOptions& options,
                                                            int64_t extra_pid,
                                                            assemble::EventTarget& target) {
  std::unique_ptr<BpfRecording> recording(new BpfRecording());
  BpfRecording& r = *recording;
  r.options_ = options;
  const std::string kallsyms = ReadKernelFile("/proc/kallsyms");
  r.options_.engine.whole_system = options.target.whole_system;
  r.options_.engine.names = options.target.names;
  r.options_.engine.irq_entries = InterruptEntries(kallsyms, kMaxIrqRanges);
  CULPRIT_TRY(r.FindProbes());
  CULPRIT_ASSIGN(r.engine_, BpfEngine::Start(r.options_.engine));
  CULPRIT_ASSIGN(LifeEvents life, LifeEvents::Open());
  r.life_ = std::make_unique<LifeEvents>(std::move(life));
  // First the filter, then the look at /proc: who is born in between is a child
  // of somebody who is in the filter.
  CULPRIT_ASSIGN(std::vector<int64_t> pids, FindProcesses(options.target));
  CULPRIT_TRY(r.StartUnwinding(pids, extra_pid));
  if (extra_pid > 0) pids.push_back(extra_pid);
  for (const int64_t pid : pids) CULPRIT_TRY(r.engine_->AddTarget(pid));
  CULPRIT_TRY(r.engine_->PrepareThreads());
  r.line_ = r.MakeLine(target, kallsyms);
  r.ScanAllTargets(std::move(pids));
  return recording;
}

std::unique_ptr<BpfRecording::Line> BpfRecording::MakeLine(assemble::EventTarget& target,
                                                           std::string_view kallsyms) const {
  auto line = std::make_unique<Line>();
  line->target = &target;
  line->stacks = std::make_unique<StackTable>(kallsyms, target.dictionary(), options_.max_stacks);
  return line;
}

// Who already runs is known before the first stack is taken.
Status BpfRecording::StartUnwinding(const std::vector<int64_t>& pids, int64_t starting_pid) {
  const UnwindMapFds maps = engine_->unwind_maps();
  if (maps.chunks < 0) return {};
  CULPRIT_ASSIGN(unwind_, UnwindFeed::Start(maps));
  unwind_->AwaitExec(starting_pid);
  if (!options_.program.empty()) unwind_->LookAtProgram(options_.program);
  unwind_->Look(pids);
  unwind_->Settle(options_.warm_up_ns);
  return {};
}

std::unique_lock<std::mutex> BpfRecording::PauseUnwinding() {
  return unwind_ == nullptr ? std::unique_lock<std::mutex>() : unwind_->Pause();
}

UnwindStats BpfRecording::unwind_stats() {
  return unwind_ == nullptr ? UnwindStats() : unwind_->Stats();
}

// A probe without a file is one of the command's program, or of a program or
// library that a recorded process has mapped.
Status BpfRecording::FindProbes() {
  if (options_.probes.empty() && !options_.functions) return {};
  std::set<std::string> files;
  files.insert(options_.program);
  CULPRIT_ASSIGN(std::vector<int64_t> pids, FindProcesses(options_.target));
  if (options_.target.whole_system) pids = ListProcesses();
  for (const int64_t pid : pids) {
    const std::optional<ProcessEntry> process = ScanProcess(pid, true);
    if (!process) continue;
    for (const MapEntry& map : process->maps) {
      if (map.path.starts_with('/')) files.insert(map.path);
    }
  }
  files.erase("");
  CULPRIT_ASSIGN(options_.engine.probes,
                 FindProbeSites(options_.probes, {files.begin(), files.end()}));
  CULPRIT_ASSIGN(TraceEventProbes events, TraceEventProbes::Open(options_.probes));
  event_probes_.emplace(std::move(events));
  if (!options_.functions) return {};
  CULPRIT_ASSIGN(FunctionProbes functions,
                 FunctionProbes::Open(*options_.functions, {files.begin(), files.end()}));
  function_probes_.emplace(std::move(functions));
  return {};
}

Status BpfRecording::TakeFunctions(bool all) {
  if (!function_probes_) return {};
  for (const FunctionHit& hit : function_probes_->Take(all)) {
    CULPRIT_TRY(function_calls_->Take(hit));
  }
  return {};
}

// The kernel programs add the children of who is recorded, not who is moved into
// a cgroup.
Status BpfRecording::JoinCgroups() {
  const int64_t now_ns = MonotonicNs();
  if (options_.target.cgroups.empty() || now_ns - joined_ns_ < kJoinNs) return {};
  joined_ns_ = now_ns;
  const Result<std::vector<int64_t>> pids = FindProcesses({.cgroups = options_.target.cgroups});
  // The cgroup is gone, and everybody in it.
  if (!pids.ok()) return {};
  const std::set<int64_t> before =
      std::exchange(members_, {pids.value().begin(), pids.value().end()});
  for (const int64_t pid : members_) {
    if (!before.contains(pid)) CULPRIT_TRY(engine_->AddTarget(pid));
  }
  return {};
}

void BpfRecording::ScanAllTargets(std::vector<int64_t> pids) {
  if (options_.target.whole_system) pids = ListProcesses();
  for (const int64_t pid : pids) {
    if (std::optional<ProcessEntry> process = ScanProcess(pid, true)) {
      processes_.push_back(std::move(*process));
    }
  }
}

// It begins in a moment: then all CPUs have heard of it, and no switch falls
// between the begin and the first that is looked at.
void BpfRecording::Begin() {
  // Again, for the totals of threads as of now; without them it works as well.
  (void)engine_->PrepareThreads();
  begin_ns_ = MonotonicNs() + kHeardNs;
  engine_->Begin(begin_ns_);
  BeginLine(*line_, begin_ns_);
  if (function_probes_) {
    line_->decoder->RememberRecorded();
    function_calls_.emplace(
        *line_->assembler, line_->target->dictionary(), begin_ns_,
        [this](int64_t tid) { return line_->decoder->IsRecorded(tid); }, line_->diagnostics);
  }
  if (unwind_ != nullptr) unwind_->Limit(options_.budget * kTableShare);
}

void BpfRecording::BeginLine(Line& line, int64_t begin_ns) {
  trace::Metadata& metadata = line.target->metadata();
  metadata.wall_start_ns = WallNs() + begin_ns - MonotonicNs();
  metadata.begin_ns = begin_ns;
  metadata.end_ns = begin_ns;
  metadata.has_switches = true;
  metadata.has_wakers = true;
  line.assembler = std::make_unique<assemble::FusedAssembler>(*line.target, begin_ns);
  line.decoder = std::make_unique<Decoder>(*line.assembler, *line.stacks, line.diagnostics);
  std::vector<std::string> scenarios;
  for (const InstanceProbe& probe : options_.probes) scenarios.push_back(probe.scenario);
  line.decoder->NameProbes(std::move(scenarios));
  if (unwind_ != nullptr) {
    line.decoder->WalkSleepersBy([this](const OpenRecord& record) {
      return unwind_
          ->Walk(record.tgid, {.program_counter = record.program_counter,
                               .stack_pointer = record.stack_pointer,
                               .frame_pointer = record.frame_pointer,
                               .link_register = record.link_register})
          .addresses;
    });
  }
  for (const ProcessEntry& process : std::exchange(processes_, {})) line.decoder->Know(process);
}

template <class Visitor>
Status BpfRecording::ForEachLine(Visitor visitor) {
  CULPRIT_TRY(visitor(*line_));
  return other_ == nullptr ? Status() : visitor(*other_);
}

// The other one has heard of no stack yet.
void BpfRecording::BeginOther(assemble::EventTarget& target) {
  other_ = MakeLine(target, ReadKernelFile("/proc/kallsyms"));
  // Where not all are recorded they are looked up when they are met.
  ScanAllTargets({});
  line_->stacks->ForgetOlder();
  engine_->RenameStacks();
  BeginLine(*other_, MonotonicNs());
}

void BpfRecording::UseOther() {
  const StackCounts counts = line_->stacks->counts();
  const StackCounts others = other_->stacks->counts();
  former_stacks_.defined += counts.defined - others.defined;
  former_stacks_.undefined += counts.undefined - others.undefined;
  former_waits_ += line_->assembler->waits() - other_->assembler->waits();
  diagnostics_.Merge(line_->diagnostics);
  other_->diagnostics = {};
  line_ = std::move(other_);
}

StackCounts BpfRecording::stack_counts() const {
  const StackCounts counts = line_->stacks->counts();
  return {.defined = former_stacks_.defined + counts.defined,
          .undefined = former_stacks_.undefined + counts.undefined};
}

// What only the other one has seen so far is not news when that is in use.
Seen BpfRecording::TakeSeen() {
  if (other_ != nullptr) other_->decoder->TakeSeen();
  return line_->decoder->TakeSeen();
}

void BpfRecording::ForgetSnapshot() {
  line_->decoder->ForgetOpen();
  if (other_ != nullptr) other_->decoder->ForgetOpen();
}

Status BpfRecording::Mark(int64_t time_ns, int64_t pid, int64_t tid, std::string_view text) {
  return ForEachLine([&](Line& line) { return line.decoder->Mark(time_ns, pid, tid, text); });
}

void BpfRecording::TakeLife() {
  const std::vector<LifeEvent> life = life_->Take();
  if (unwind_ != nullptr) unwind_->See(life);
  const auto middle = early_life_.insert(early_life_.end(), life.begin(), life.end());
  std::inplace_merge(early_life_.begin(), middle, early_life_.end(),
                     [](const LifeEvent& a, const LifeEvent& b) { return a.time_ns < b.time_ns; });
}

// Probes have smaller rings.
bool BpfRecording::IsUrgent() const {
  return engine_->ring_fill() >= kUrgentFill || event_probes_ || function_probes_;
}

// With a budget it is known what a moment costs only if all of it was read.
Status BpfRecording::TickIfDue() {
  const bool may_wait = options_.budget == 0 && engine_->ring_fill() < kDueFill && !IsUrgent();
  if (!may_wait || MonotonicNs() - ticked_ns_ >= kDueNs) {
    return Take(&breather_);
  }
  TakeLife();
  return JoinCgroups();
}

// Records on their way still have the names of before.
void BpfRecording::RenameStacksIfFull() {
  if (!line_->stacks->is_full()) return;
  line_->stacks->ForgetOlder();
  if (other_ != nullptr) other_->stacks->ForgetOlder();
  engine_->RenameStacks();
}

// The ring is copied first: what the life events tell about the records in it
// has then surely come.
Status BpfRecording::Take(Breather* breather) {
  ticked_ns_ = MonotonicNs();
  batch_.clear();
  if (breather != nullptr) breather->Begin();
  engine_->Drain([&](std::string_view record) {
    const auto size = static_cast<uint32_t>(record.size());
    batch_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    batch_.append(record);
    if (breather != nullptr) breather->Step();
  });
  TakeLife();
  const std::vector<LifeEvent> life = std::exchange(early_life_, {});
  CULPRIT_TRY(ForEachLine([&](Line& line) { return line.decoder->Feed(batch_, life, breather); }));
  RenameStacksIfFull();
  if (event_probes_) {
    for (const ProbeHit& hit : event_probes_->Take()) {
      if (hit.time_ns < begin_ns_ || !line_->decoder->IsRecorded(hit.tid)) continue;
      line_->decoder->Probe(hit);
      if (other_ != nullptr) other_->decoder->Probe(hit);
    }
  }
  CULPRIT_TRY(TakeFunctions(false));
  return JoinCgroups();
}

Status BpfRecording::Pause() {
  CULPRIT_TRY(engine_->Pause());
  return Tick();
}

Status BpfRecording::Resume() {
  return engine_->Resume([] { return MonotonicNs() + kHeardNs; });
}

Status BpfRecording::End() {
  end_ns_ = MonotonicNs() + kSettleNs;
  engine_->End(end_ns_);
  SleepNs(2 * kSettleNs);
  CULPRIT_TRY(Tick());
  CULPRIT_TRY(engine_->TellOpen());
  CULPRIT_TRY(Tick());
  if (function_probes_) {
    CULPRIT_TRY(TakeFunctions(true));
    CULPRIT_TRY(function_calls_->Finish(end_ns_));
    if (function_probes_->lost() > 0) {
      diagnostics_.Count("entry or exit of a function, for want of room", function_probes_->lost());
    }
  }
  return line_->decoder->Finish(end_ns_);
}

Status BpfRecording::Snapshot() {
  CULPRIT_TRY(Tick());
  ForgetSnapshot();
  // Threads are told about one after the other, while others get and lose their
  // CPUs; what was at this moment all of that agrees upon.
  end_ns_ = MonotonicNs();
  CULPRIT_TRY(engine_->TellOpen());
  return Tick();
}

Status BpfRecording::EndCopy() { return line_->decoder->Finish(MonotonicNs()); }

Status BpfRecording::Note(std::string_view text) {
  const int64_t now_ns = std::max(begin_ns_, MonotonicNs());
  return ForEachLine([&](Line& line) { return line.assembler->Note(now_ns, text); });
}

Diagnostics BpfRecording::TakeDiagnostics() {
  Diagnostics all = std::exchange(diagnostics_, {});
  all.Merge(line_->diagnostics);
  all.Merge(line_->assembler->diagnostics());
  all.Merge(line_->stacks->TakeDiagnostics());
  return all;
}

}  // namespace culprit::record
