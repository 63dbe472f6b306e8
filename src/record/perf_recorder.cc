// SPDX-License-Identifier: Apache-2.0
#include "record/perf_recorder.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "import/perf_data_sample.h"
#include "record/machine.h"
#include "record/symbol_pass.h"

namespace culprit::record {
namespace {

constexpr int kPerfTickMs = 50;
constexpr size_t kAlignment = 8;
constexpr uint32_t kExecutable = 4;  // PROT_EXEC

uint64_t RecordTime(const import_::PerfSession& session, const import_::PerfRecordView& record) {
  const auto& attrs = session.attrs;
  if (record.type == PERF_RECORD_SAMPLE) {
    return import_::PerfSampleTime(attrs.all()[attrs.OfSample(record.body, false)], record.body,
                                   false);
  }
  const import_::PerfAttr& attr = attrs.all()[attrs.OfRecord(record.body, false)];
  return import_::ParsePerfSampleId(attr, record.body, false).time;
}

void PutText(ByteWriter& out, std::string_view text) {
  out.Bytes(text);
  do {
    out.U8(0);
  } while (out.size() % kAlignment != 0);
}

}  // namespace

PerfRecorder::PerfRecorder(const RecordOptions& options, const RecordListener& listener, Tier tier)
    : options_(options), listener_(listener), tier_(tier) {}

Status PerfRecorder::Prepare() {
  if (options_.flight_ns > 0) {
    return Error{.message = "a flight recorder needs the kernel programs",
                 .hint = "run as root, on a kernel with BTF"};
  }
  if (!options_.probes.empty() || options_.functions) {
    return Error{.message = "instances and functions by probes need the kernel programs",
                 .hint = "run as root, on a kernel with BTF"};
  }
  CULPRIT_ASSIGN(file_, FileTarget::Create(options_.path, options_.overwrite));
  const Status status = Open();
  if (!status.ok()) unlink(options_.path.c_str());
  return status;
}

Status PerfRecorder::Open() {
  if (!options_.command.empty()) {
    CULPRIT_ASSIGN(ChildProcess child, ChildProcess::Prepare(options_.command));
    child_.emplace(std::move(child));
  }
  CULPRIT_ASSIGN(std::vector<int64_t> pids, FindProcesses(options_.target));
  if (child_) pids.push_back(child_->pid());
  const bool whole_machine = tier_ == Tier::kPerfSystem;
  if (!whole_machine && pids.empty()) {
    return Error{.message = "no process to record",
                 .hint = "the whole system can only be recorded as root"};
  }
  CULPRIT_ASSIGN(PerfEvents events,
                 PerfEvents::Open({.whole_machine = whole_machine,
                                   .pids = pids,
                                   .syscalls = options_.syscalls,
                                   .sample_period_ns = options_.sample_period_ns}));
  events_ = std::make_unique<PerfEvents>(std::move(events));
  FillHead();
  assembler_ = std::make_unique<assemble::Assembler>(file_->writer());
  const import_::ImportOptions import = {.symbols = options_.symbols};
  facts_ = std::make_unique<import_::PerfDataFacts>(events_->session(), import, file_->writer(),
                                                    *assembler_, outcome_.diagnostics);
  queue_ = std::make_unique<import_::PerfDataQueue>(
      [this](uint64_t time, const import_::PerfRecordView& record) {
        return facts_->Feed(time, record);
      });
  for (const int64_t pid : whole_machine ? ListProcesses() : pids) {
    if (const auto process = ScanProcess(pid, true)) Know(*process);
  }
  return {};
}

void PerfRecorder::FillHead() {
  trace::Metadata& metadata = file_->metadata();
  FillMachine(metadata);
  metadata.source = "culprit record " CULPRIT_VERSION;
  metadata.app = Describe(options_.target);
  for (const std::string& word : options_.command) {
    metadata.app += (metadata.app.empty() ? "" : " ") + word;
  }
  metadata.labels = options_.labels;
  metadata.labels.merge(LabelsOf(options_.target));
  metadata.properties["recorder.tier"] = Name(tier_);
  metadata.properties["recorder.not_seen"] = Blindness(tier_);
}

// A record as the kernel would have written it; it has no time, so it describes
// what was before.
void PerfRecorder::Synthesize(uint32_t type, std::string body) {
  const import_::PerfAttr& attr = events_->session().attrs.all().front();
  body.append(import_::PerfSampleIdBytes(attr), '\0');
  const Status status =
      facts_->Feed(0, {.type = type, .misc = PERF_RECORD_MISC_USER, .body = body});
  if (!status.ok()) outcome_.diagnostics.Count("process that could not be described");
}

void PerfRecorder::Know(const ProcessEntry& process) {
  const auto pid = static_cast<uint32_t>(process.pid);
  for (const ThreadEntry& thread : process.threads) {
    ByteWriter name;
    name.U32(pid);
    name.U32(static_cast<uint32_t>(thread.tid));
    PutText(name, thread.name);
    Synthesize(PERF_RECORD_COMM, name.Take());
  }
  for (const MapEntry& map : process.maps) {
    ByteWriter out;
    out.U32(pid);
    out.U32(pid);
    out.U64(map.start);
    out.U64(map.end - map.start);
    out.U64(map.file_offset);
    out.Bytes(std::string(24, '\0'));  // which file: its path tells
    out.U32(kExecutable);
    out.U32(0);
    PutText(out, map.path);
    Synthesize(PERF_RECORD_MMAP2, out.Take());
  }
}

Status PerfRecorder::Tick() {
  Status status;
  events_->Drain([&](std::string_view record) {
    perf_event_header header;
    memcpy(&header, record.data(), sizeof(header));
    const import_::PerfRecordView view = {.type = header.type,
                                          .misc = header.misc,
                                          .body = record.substr(sizeof(header)),
                                          .offset = offset_};
    offset_ += record.size();
    if (!status.ok()) return;
    facts_->Preview(view);
    status = queue_->Add(RecordTime(events_->session(), view), view);
  });
  CULPRIT_TRY(status);
  return queue_->EndRound();
}

bool PerfRecorder::IsOver(int64_t begin_ns) {
  if (listener_.should_stop()) return true;
  if (child_ && child_->ExitCode()) return true;
  return options_.duration_ns > 0 && MonotonicNs() - begin_ns >= options_.duration_ns;
}

Status PerfRecorder::Loop() {
  const int64_t begin_ns = MonotonicNs();
  while (!IsOver(begin_ns)) {
    poll(nullptr, 0, kPerfTickMs);
    CULPRIT_TRY(Tick());
    CULPRIT_TRY(file_->FlushIfDue());
  }
  return Tick();
}

Status PerfRecorder::Finish() {
  CULPRIT_TRY(queue_->Finish());
  CULPRIT_TRY(facts_->Finish());
  CULPRIT_TRY(assembler_->Finish(MonotonicNs()));
  outcome_.diagnostics.Merge(assembler_->diagnostics());
  trace::Metadata& metadata = file_->metadata();
  metadata.wall_start_ns = WallNs() - (MonotonicNs() - metadata.begin_ns);
  metadata.properties["overhead.recorder_ns"] = std::to_string(OwnCpuNs());
  CULPRIT_TRY(file_->Finish());
  // Names are there; this marks the stacks that are not whole.
  CULPRIT_ASSIGN(const SymbolCounts counts,
                 SymbolizeFile(options_.path, false, outcome_.diagnostics));
  outcome_.user_stacks = counts.user_stacks;
  outcome_.complete_stacks = counts.complete_stacks;
  outcome_.waits = counts.waits;
  outcome_.bytes = counts.bytes;
  return {};
}

Result<RecordOutcome> PerfRecorder::Run() {
  const int64_t begin_ns = MonotonicNs();
  CULPRIT_TRY(events_->Enable());
  if (child_) {
    if (const Status started = child_->Release(); !started.ok()) {
      unlink(options_.path.c_str());
      return started.error();
    }
  }
  Status status = Loop();
  if (status.ok()) status = Finish();
  if (!status.ok()) outcome_.error = status.error();
  outcome_.tier = tier_;
  outcome_.dur_ns = MonotonicNs() - begin_ns;
  outcome_.own_ns = OwnCpuNs();
  outcome_.events = file_->events();
  if (outcome_.bytes == 0) outcome_.bytes = file_->bytes();
  outcome_.paths.push_back(options_.path);
  if (child_) {
    outcome_.exit_code = child_->ExitCode();
    outcome_.command_runs_on = !outcome_.exit_code.has_value();
  }
  return outcome_;
}

}  // namespace culprit::record
