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
  CULPRIT_ASSIGN(r.engine_, BpfEngine::Start(r.options_.engine));
  CULPRIT_ASSIGN(LifeEvents life, LifeEvents::Open());
  r.life_ = std::make_unique<LifeEvents>(std::move(life));
  // First the filter, then the look at /proc: who is born in between is a child
  // of somebody who is in the filter.
  CULPRIT_ASSIGN(std::vector<int64_t> pids, FindProcesses(options.target));
  if (extra_pid > 0) pids.push_back(extra_pid);
  for (const int64_t pid : pids) CULPRIT_TRY(r.engine_->AddTarget(pid));
  r.stacks_ = std::make_unique<StackTable>(kallsyms, target.dictionary());
  if (options.target.whole_system) pids = ListProcesses();
  r.ScanTargets(pids);
  return recording;
}

void BpfRecording::ScanTargets(const std::vector<int64_t>& pids) {
  for (const int64_t pid : pids) {
    if (std::optional<ProcessEntry> process = ScanProcess(pid, true)) {
      processes_.push_back(std::move(*process));
    }
  }
}

void BpfRecording::Begin() {
  begin_ns_ = MonotonicNs();
  trace::Metadata& metadata = target_->metadata();
  metadata.wall_start_ns = WallNs();
  metadata.begin_ns = begin_ns_;
  metadata.end_ns = begin_ns_;
  metadata.has_switches = true;
  metadata.has_wakers = true;
  assembler_ = std::make_unique<assemble::FusedAssembler>(*target_, begin_ns_);
  decoder_ = std::make_unique<Decoder>(*assembler_, *stacks_, diagnostics_);
  for (const ProcessEntry& process : std::exchange(processes_, {})) decoder_->Know(process);
  engine_->Begin(begin_ns_);
}

// The ring is copied first: what the life events tell about the records in it
// has then surely come.
Status BpfRecording::Tick() {
  batch_.clear();
  CULPRIT_TRY(engine_->Drain([this](std::string_view record) {
    const auto size = static_cast<uint32_t>(record.size());
    batch_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    batch_.append(record);
  }));
  return decoder_->Feed(batch_, life_->Take());
}

Status BpfRecording::End() {
  end_ns_ = MonotonicNs() + kSettleNs;
  engine_->End(end_ns_);
  SleepNs(2 * kSettleNs);
  CULPRIT_TRY(Tick());
  CULPRIT_TRY(engine_->TellOpen());
  CULPRIT_TRY(Tick());
  return decoder_->Finish(end_ns_);
}

Status BpfRecording::Snapshot() {
  CULPRIT_TRY(Tick());
  decoder_->ForgetOpen();
  CULPRIT_TRY(engine_->TellOpen());
  end_ns_ = MonotonicNs();
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
