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
// For the first unwind tables; what is not ready then follows.
constexpr int64_t kWarmUpNs = 150'000'000;
// Of the budget, and of one CPU, for those that are made later.
constexpr double kTableShare = 1.0 / 3;
// What is in the ring is read when it fills so much of it, or after that time.
constexpr double kDueFill = 0.25;
constexpr int64_t kDueNs = 250'000'000;

void SleepNs(int64_t dur_ns) {
  const timespec time = {.tv_sec = 0, .tv_nsec = dur_ns};
  nanosleep(&time, nullptr);
}

}  // namespace

BpfRecording::~BpfRecording() = default;

Result<std::unique_ptr<BpfRecording>> BpfRecording::Prepare(const BpfRecordingOptions& options,
                                                            int64_t extra_pid,
                                                            assemble::EventTarget& target) {
  std::unique_ptr<BpfRecording> recording(new BpfRecording());
  BpfRecording& r = *recording;
  r.options_ = options;
  r.target_ = &target;
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
  r.stacks_ = std::make_unique<StackTable>(kallsyms, target.dictionary(), options.max_stacks);
  if (options.target.whole_system) pids = ListProcesses();
  r.ScanTargets(pids);
  return recording;
}

// Who already runs is known before the first stack is taken.
Status BpfRecording::StartUnwinding(const std::vector<int64_t>& pids, int64_t starting_pid) {
  const UnwindMapFds maps = engine_->unwind_maps();
  if (maps.chunks < 0) return {};
  CULPRIT_ASSIGN(unwind_, UnwindFeed::Start(maps));
  unwind_->AwaitExec(starting_pid);
  if (!options_.program.empty()) unwind_->LookAtProgram(options_.program);
  unwind_->Look(pids);
  unwind_->Settle(kWarmUpNs);
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

void BpfRecording::ScanTargets(const std::vector<int64_t>& pids) {
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
  trace::Metadata& metadata = target_->metadata();
  metadata.wall_start_ns = WallNs() + begin_ns_ - MonotonicNs();
  metadata.begin_ns = begin_ns_;
  metadata.end_ns = begin_ns_;
  metadata.has_switches = true;
  metadata.has_wakers = true;
  assembler_ = std::make_unique<assemble::FusedAssembler>(*target_, begin_ns_);
  decoder_ = std::make_unique<Decoder>(*assembler_, *stacks_, diagnostics_);
  std::vector<std::string> scenarios;
  for (const InstanceProbe& probe : options_.probes) scenarios.push_back(probe.scenario);
  decoder_->NameProbes(std::move(scenarios));
  if (unwind_ != nullptr) {
    decoder_->WalkSleepersBy([this](const OpenRecord& record) {
      return unwind_
          ->Walk(record.tgid, {.program_counter = record.program_counter,
                               .stack_pointer = record.stack_pointer,
                               .frame_pointer = record.frame_pointer,
                               .link_register = record.link_register})
          .addresses;
    });
  }
  if (function_probes_) {
    decoder_->RememberRecorded();
    function_calls_.emplace(
        *assembler_, target_->dictionary(), begin_ns_,
        [this](int64_t tid) { return decoder_->IsRecorded(tid); }, diagnostics_);
  }
  for (const ProcessEntry& process : std::exchange(processes_, {})) decoder_->Know(process);
  if (unwind_ != nullptr) unwind_->Limit(options_.budget * kTableShare);
}

void BpfRecording::TakeLife() {
  const std::vector<LifeEvent> life = life_->Take();
  if (unwind_ != nullptr) unwind_->See(life);
  const auto middle = early_life_.insert(early_life_.end(), life.begin(), life.end());
  std::inplace_merge(early_life_.begin(), middle, early_life_.end(),
                     [](const LifeEvent& a, const LifeEvent& b) { return a.time_ns < b.time_ns; });
}

// With a budget it is known what a moment costs only if all of it was read. Probes have
// smaller rings.
Status BpfRecording::TickIfDue() {
  const bool may_wait = options_.budget == 0 && !event_probes_ && !function_probes_;
  if (!may_wait || engine_->ring_fill() >= kDueFill || MonotonicNs() - ticked_ns_ >= kDueNs) {
    return Tick();
  }
  TakeLife();
  return JoinCgroups();
}

// Records on their way still have the names of before.
void BpfRecording::RenameStacksIfFull() {
  if (!stacks_->is_full()) return;
  stacks_->ForgetOlder();
  engine_->RenameStacks();
}

// The ring is copied first: what the life events tell about the records in it
// has then surely come.
Status BpfRecording::Tick() {
  ticked_ns_ = MonotonicNs();
  batch_.clear();
  engine_->Drain([this](std::string_view record) {
    const auto size = static_cast<uint32_t>(record.size());
    batch_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    batch_.append(record);
  });
  TakeLife();
  CULPRIT_TRY(decoder_->Feed(batch_, std::exchange(early_life_, {})));
  RenameStacksIfFull();
  if (event_probes_) {
    for (const ProbeHit& hit : event_probes_->Take()) {
      if (hit.time_ns >= begin_ns_ && decoder_->IsRecorded(hit.tid)) decoder_->Probe(hit);
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
  return decoder_->Finish(end_ns_);
}

Status BpfRecording::Snapshot() {
  CULPRIT_TRY(Tick());
  decoder_->ForgetOpen();
  // Threads are told about one after the other, while others get and lose their
  // CPUs; what was at this moment all of that agrees upon.
  end_ns_ = MonotonicNs();
  CULPRIT_TRY(engine_->TellOpen());
  return Tick();
}

Status BpfRecording::EndCopy() { return decoder_->Finish(MonotonicNs()); }

Status BpfRecording::Note(std::string_view text) {
  return assembler_->Note(std::max(begin_ns_, MonotonicNs()), text);
}

Diagnostics BpfRecording::TakeDiagnostics() {
  Diagnostics all = std::exchange(diagnostics_, {});
  all.Merge(assembler_->diagnostics());
  all.Merge(stacks_->TakeDiagnostics());
  return all;
}

}  // namespace culprit::record
