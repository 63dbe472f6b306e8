// SPDX-License-Identifier: Apache-2.0
#include "record/bpf_recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "record/machine.h"
#include "record/symbol_pass.h"

namespace culprit::record {
namespace {

constexpr int kTickMs = 50;
constexpr int64_t kDumpPauseNs = 5'000'000'000;    // between two triggered dumps
constexpr int64_t kRenewMarginNs = 1'000'000'000;  // what was on its way has surely come
constexpr int kDumpFailed = 1;

EngineOptions EngineOf(const RecordOptions& options) {
  return {.syscalls = options.syscalls,
          .marks = options.marks,
          .ring_bytes = options.ring_bytes,
          .sample_period_ns = options.sample_period_ns};
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string NumberedPath(const std::string& path, size_t number) {
  const std::filesystem::path whole(path);
  const std::string name =
      whole.stem().string() + "-" + std::to_string(number) + whole.extension().string();
  return (whole.parent_path() / name).string();
}

}  // namespace

BpfRecorder::BpfRecorder(const RecordOptions& options, const RecordListener& listener)
    : options_(options),
      listener_(listener),
      regulator_({.budget = options.budget,
                  .min_wait_ns = options.min_wait_ns,
                  .sample_period_ns = options.sample_period_ns,
                  .syscall_stacks = options.syscall_stacks}) {}

assemble::EventTarget& BpfRecorder::target() {
  if (flight_ != nullptr) return *flight_;
  return *file_;
}

Status BpfRecorder::Prepare() {
  if (options_.flight_ns > 0) {
    flight_ = std::make_unique<FlightTarget>(options_.flight_ns, options_.flight_bytes);
  } else {
    CULPRIT_ASSIGN(file_, FileTarget::Create(options_.path, options_.overwrite));
  }
  const auto prepare = [&]() -> Status {
    if (!options_.command.empty()) {
      CULPRIT_ASSIGN(ChildProcess child, ChildProcess::Prepare(options_.command));
      child_.emplace(std::move(child));
    }
    const BpfRecordingOptions recording = {
        .target = options_.target,
        .engine = EngineOf(options_),
        .program = options_.command.empty() ? "" : FindProgram(options_.command.front()),
        .probes = options_.probes,
        .functions = options_.functions,
        .budget = options_.budget};
    CULPRIT_ASSIGN(recording_,
                   BpfRecording::Prepare(recording, child_ ? child_->pid() : 0, target()));
    return {};
  };
  const Status status = prepare();
  if (!status.ok() && file_ != nullptr) unlink(options_.path.c_str());
  return status;
}

void BpfRecorder::FillHead() {
  trace::Metadata& metadata = target().metadata();
  FillMachine(metadata);
  metadata.source = "culprit record " CULPRIT_VERSION;
  metadata.app = options_.command.empty() ? Describe(options_.target) : Join(options_.command);
  metadata.sample_period_ns = options_.sample_period_ns;
  metadata.labels = options_.labels;
  metadata.labels.merge(LabelsOf(options_.target));
  metadata.properties["recorder.tier"] = Name(Tier::kBpf);
  metadata.properties["recorder.budget"] = fmt::format("{:.4f}", options_.budget);
  metadata.properties["threshold.wait_ns"] = std::to_string(options_.min_wait_ns);
}

Result<RecordOutcome> BpfRecorder::Run() {
  FillHead();
  haste_.emplace([this] { return recording_->engine().ring_fill(); });
  if (Result<ControlSocket> control = ControlSocket::Listen(); control.ok()) {
    control_.emplace(std::move(control).value());
  } else {
    listener_.note("no control socket: " + control.error().ToString());
  }
  CULPRIT_TRY(regulator_.Prepare(*recording_));
  recording_->Begin();
  regulator_.Begin(*recording_);
  if (child_) {
    child_fd_ = static_cast<int>(syscall(SYS_pidfd_open, child_->pid(), 0));
    if (const Status started = child_->Release(); !started.ok()) {
      if (file_ != nullptr) unlink(options_.path.c_str());
      return started.error();
    }
  }
  // An error from here on ends the recording; what has been written stands.
  Status status = Loop();
  if (status.ok()) status = recording_->End();
  haste_.reset();
  FillTail(regulator_.Total(*recording_));
  if (status.ok() && file_ != nullptr) status = file_->Finish();
  if (child_fd_ >= 0) close(child_fd_);
  Summarize();
  recording_.reset();
  if (status.ok() && file_ != nullptr) status = NameSymbols();
  if (!status.ok()) outcome_.error = status.error();
  return outcome_;
}

Status BpfRecorder::NameSymbols() {
  CULPRIT_ASSIGN(const SymbolCounts counts,
                 SymbolizeFile(options_.path, options_.symbols, outcome_.diagnostics));
  outcome_.user_stacks = counts.user_stacks;
  outcome_.complete_stacks = counts.complete_stacks;
  outcome_.bytes = counts.bytes;
  return {};
}

bool BpfRecorder::IsOver() {
  if (listener_.should_stop()) return true;
  if (child_ && child_->ExitCode()) return true;
  const int64_t past_ns = MonotonicNs() - recording_->begin_ns();
  return options_.duration_ns > 0 && past_ns >= options_.duration_ns;
}

void BpfRecorder::Sleep() const {
  int64_t wait_ms = std::clamp<int64_t>(regulator_.SleepNs() / 1'000'000, 1, kTickMs);
  if (options_.duration_ns > 0) {
    const int64_t left_ns = options_.duration_ns - (MonotonicNs() - recording_->begin_ns());
    wait_ms = std::clamp<int64_t>(left_ns / 1'000'000, 0, wait_ms);
  }
  pollfd child = {.fd = child_fd_, .events = POLLIN, .revents = 0};
  poll(&child, child_fd_ >= 0 ? 1 : 0, static_cast<int>(wait_ms));
}

Status BpfRecorder::Loop() {
  while (!IsOver()) {
    Sleep();
    haste_->Seen();
    CULPRIT_TRY(recording_->TickIfDue());
    if (control_) {
      control_->Serve([this](std::string_view request) { return Answer(request); });
    }
    CULPRIT_TRY(Govern());
    if (file_ != nullptr) CULPRIT_TRY(file_->FlushIfDue());
    if (flight_ == nullptr) continue;
    if (listener_.should_dump()) TryDump("on request");
    CheckTriggers();
    RenewFlight();
  }
  const bool failed = child_ && child_->ExitCode().value_or(0) != 0;
  if (flight_ != nullptr && options_.triggers.failure && failed) {
    TryDump("the command ended with code " + std::to_string(*child_->ExitCode()));
  }
  return {};
}

Status BpfRecorder::Govern() {
  CULPRIT_ASSIGN(const bool changed, regulator_.Turn(*recording_));
  return changed ? recording_->Note("recorder " + regulator_.governor().Describe()) : Status();
}

// A flight recorder may run for months, and names of all that it ever saw would fill the memory.
void BpfRecorder::RenewFlight() {
  const int64_t now_ns = MonotonicNs();
  if (next_flight_ != nullptr) {
    if (now_ns - renewed_ns_ < options_.flight_ns + kRenewMarginNs) return;
    recording_->UseOther();
    flight_ = std::move(next_flight_);
    ++renewals_;
    return;
  }
  if (flight_->names_bytes() < options_.flight_names_bytes || !recording_->MayBeginOther()) return;
  next_flight_ = std::make_unique<FlightTarget>(options_.flight_ns, options_.flight_bytes);
  next_flight_->metadata() = flight_->metadata();
  recording_->BeginOther(*next_flight_);
  renewed_ns_ = now_ns;
}

void BpfRecorder::CheckTriggers() {
  const Seen seen = recording_->TakeSeen();
  const FlightTriggers& triggers = options_.triggers;
  std::string reason;
  if (triggers.wait_ns > 0 && seen.longest_wait_ns >= triggers.wait_ns) {
    reason = "thread " + std::to_string(seen.longest_wait_tid) + " waited " +
             FormatDuration(seen.longest_wait_ns);
  }
  const auto& marks = seen.marks;
  if (!triggers.mark.empty() &&
      std::find(marks.begin(), marks.end(), triggers.mark) != marks.end()) {
    reason = "mark " + triggers.mark;
  }
  if (reason.empty()) return;
  if (last_dump_ns_ != 0 && MonotonicNs() - last_dump_ns_ < kDumpPauseNs) return;
  TryDump(reason);
}

std::string BpfRecorder::Answer(std::string_view request) {
  MarkRequest mark;
  if (ParseMark(request, mark)) {
    const int64_t time_ns = std::clamp(mark.time_ns, recording_->begin_ns(), MonotonicNs());
    const Status status = recording_->Mark(time_ns, mark.pid, mark.pid, mark.text);
    return status.ok() ? "ok" : "error " + status.error().ToString();
  }
  if (request == "cost") {
    return fmt::format("ok {:.6f}", Governor::Share(regulator_.Total(*recording_)));
  }
  if (request != "dump") return "error unknown request";
  if (flight_ == nullptr)
    return "error this recorder writes its file all the time: " + options_.path;
  const Result<std::string> path = Dump("on request");
  return path.ok() ? "ok " + path.value() : "error " + path.error().ToString();
}

Result<std::string> BpfRecorder::Dump(std::string_view reason) {
  const std::string path = NumberedPath(options_.path, outcome_.paths.size() + 1);
  if (options_.overwrite == Overwrite::kRefuse && std::filesystem::exists(path)) {
    return Error{
        .message = "not written, for it exists", .file = path, .hint = "overwrite it with --force"};
  }
  flight_->Hold();
  const Result<pid_t> started = StartWriter(path, reason);
  flight_->Release();
  CULPRIT_ASSIGN(const pid_t writer, started);
  int status = 0;
  while (waitpid(writer, &status, WNOHANG) == 0) {
    poll(nullptr, 0, kTickMs / 5);
    haste_->Seen();
    CULPRIT_TRY(recording_->Tick());
  }
  last_dump_ns_ = MonotonicNs();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{.message = "the dump could not be written", .file = path};
  }
  outcome_.paths.push_back(path);
  listener_.note("wrote " + path + ": " + std::string(reason));
  return path;
}

// A copy of this process writes the file, so that the recording goes on
// meanwhile: the copy's memory is as of now.
Result<pid_t> BpfRecorder::StartWriter(const std::string& path, std::string_view reason) {
  CULPRIT_TRY(recording_->Snapshot());
  target().metadata().properties["flight.reason"] = reason;
  // In the writer it would be the CPU time of the writer.
  const Cost cost = regulator_.Total(*recording_);
  std::unique_lock<std::mutex> pause = recording_->PauseUnwinding();
  const pid_t writer = fork();
  if (pause.owns_lock()) pause.unlock();
  if (writer == 0) WriteDumpAndExit(path, cost);
  recording_->ForgetSnapshot();
  if (writer < 0) return ErrnoError("start a process for the dump", path);
  return writer;
}

// A dump that fails does not end the recording.
void BpfRecorder::TryDump(std::string_view reason) {
  if (const Result<std::string> path = Dump(reason); !path.ok()) {
    listener_.note(path.error().ToString());
  }
}

void BpfRecorder::WriteDumpAndExit(const std::string& path, const Cost& cost) {
  UseUsualPriority();
  const int64_t end_ns = recording_->end_ns();
  Status status = recording_->EndCopy();
  FillTail(cost);
  if (status.ok()) status = flight_->WriteTo(path, end_ns, options_.symbols);
  _exit(status.ok() ? 0 : kDumpFailed);
}

// What is known only at the end.
void BpfRecorder::FillTail(const Cost& cost) {
  const EngineCounters counters = recording_->engine().ReadCounters();
  outcome_.busy_ns = cost.busy_ns;
  outcome_.kernel_ns = cost.kernel_ns;
  outcome_.own_ns = cost.own_ns;
  outcome_.overhead = Governor::Share(cost);
  outcome_.highest_level = regulator_.governor().highest_level();
  outcome_.left_out = counters.total.left_out;
  outcome_.lost = counters.total.lost_records;
  auto& properties = target().metadata().properties;
  const auto set = [&](const char* key, uint64_t value) {
    properties[key] = std::to_string(value);
  };
  set("overhead.cpu_ns", static_cast<uint64_t>(cost.kernel_ns + cost.own_ns));
  set("overhead.kernel_ns", static_cast<uint64_t>(cost.kernel_ns));
  set("overhead.recorder_ns", static_cast<uint64_t>(cost.own_ns));
  set("overhead.target_ns", static_cast<uint64_t>(cost.busy_ns));
  properties["overhead.share"] = fmt::format("{:.4f}", outcome_.overhead);
  set("overhead.highest_level", static_cast<uint64_t>(regulator_.governor().highest_level()));
  set("left_out.waits", counters.total.left_out);
  set("threshold.wait_ns", static_cast<uint64_t>(regulator_.governor().current().min_wait_ns));
  const UnwindStats unwinding = recording_->unwind_stats();
  const UnwindCounters walks = recording_->engine().ReadUnwindCounters();
  set("unwind.stacks", walks.walked);
  set("unwind.complete", walks.complete);
  set("unwind.recalled", walks.recalled);
  set("unwind.callers_recalled", walks.joined);
  set("unwind.proven", walks.proven);
  set("unwind.kernel_recalled", counters.total.recalled);
  set("unwind.by_frame_pointers", walks.unlisted);
  set("unwind.frames", walks.frames);
  set("unwind.frames_by_frame_pointers", walks.guessed);
  set("unwind.modules", unwinding.modules);
  set("unwind.modules_refused", unwinding.refused);
  set("unwind.rows", unwinding.rows);
  set("unwind.table_bytes", unwinding.table_bytes);
  set("unwind.kernel_bytes", unwinding.kernel_bytes);
  if (flight_ != nullptr) set("flight.renewals", renewals_);
  set("drops.total", counters.total.lost_records);
  for (size_t cpu = 0; cpu < counters.lost_records.size(); ++cpu) {
    if (counters.lost_records[cpu] == 0) continue;
    set(("drops.cpu" + std::to_string(cpu)).c_str(), counters.lost_records[cpu]);
  }
}

void BpfRecorder::Summarize() {
  outcome_.tier = Tier::kBpf;
  // Without an end of its own (an error, a flight recorder) it went on until now.
  const bool ended = file_ != nullptr && recording_->end_ns() > recording_->begin_ns();
  outcome_.dur_ns = (ended ? recording_->end_ns() : MonotonicNs()) - recording_->begin_ns();
  outcome_.waits = recording_->waits();
  outcome_.diagnostics = recording_->TakeDiagnostics();
  if (const Counters total = recording_->engine().ReadCounters().total; total.no_storage != 0) {
    outcome_.diagnostics.Count("event of a thread that the kernel had no memory for",
                               total.no_storage);
  }
  if (const uint64_t lost = recording_->stack_counts().undefined; lost != 0) {
    outcome_.diagnostics.Count("stack whose record was lost", lost);
  }
  if (file_ != nullptr) {
    outcome_.paths.push_back(options_.path);
    outcome_.events = file_->events();
    outcome_.bytes = file_->bytes();
  } else {
    outcome_.events = flight_->events();
  }
  if (!child_) return;
  outcome_.exit_code = child_->ExitCode();
  outcome_.command_runs_on = !outcome_.exit_code.has_value();
}

}  // namespace culprit::record
