// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <filesystem>

#include "base/text.h"
#include "cli/guard_commands.h"
#include "cli/guard_target.h"
#include "cli/live_flags.h"
#include "guard/call_export.h"
#include "guard/collector.h"
#include "guard/plan_builder.h"
#include "guard/program_check.h"
#include "record/recorder.h"

namespace culprit::cli {
namespace {

constexpr uint32_t kCallsPlan = 1;

struct CallsOptions {
  std::vector<std::string> command;
  int64_t attach_pid = 0;  // 0: the command
  std::string path;
  Overwrite overwrite = Overwrite::kRefuse;
  uint64_t for_ns = 0;
  uint64_t log_bytes = 0;
  bool keep_running = false;
  guard::InjectOptions inject;
};

Result<CallsOptions> ReadCallsOptions(const Arguments& arguments) {
  CallsOptions options;
  options.command = arguments.operands();
  if (arguments.Has("--attach")) {
    CULPRIT_ASSIGN(options.attach_pid, ParsePid(arguments.Text("--attach")));
  }
  if (options.command.empty() == (options.attach_pid == 0)) {
    return Error{.message = "say whose calls: those of a command or of --attach PID",
                 .hint = "culprit guard calls -o app.ctrace -- COMMAND..."};
  }
  options.path = arguments.Text("--output");
  options.overwrite = arguments.Has("--force") ? Overwrite::kAllow : Overwrite::kRefuse;
  options.for_ns = static_cast<uint64_t>(arguments.DurationNs("--for"));
  options.log_bytes = arguments.Number("--log-mb") << 20;
  options.keep_running = arguments.Has("--keep-running");
  options.inject.allow_seccomp = arguments.Has("--allow-seccomp");
  std::error_code code;
  if (options.overwrite == Overwrite::kRefuse && std::filesystem::exists(options.path, code)) {
    return Error{
        .message = "exists already", .file = options.path, .hint = "--force overwrites it"};
  }
  return options;
}

// Functions write their entries, the recorder records the system calls beside them.
class CallsRecording {
 public:
  CallsRecording(const CallsOptions& options, Output& output, guard::SessionFolder& session)
      : options_(options), output_(output), session_(session), collector_(session, NoWatch()) {}

  Result<record::RecordOutcome> Run() {
    const guard::TrainPlanOptions plan = {
        .skip_modules = {}, .log_bytes = options_.log_bytes, .log_times = true};
    CULPRIT_TRY(session_.WritePlan(kCallsPlan, guard::TrainPlan(plan)));
    CULPRIT_TRY(session_.Want(kCallsPlan));
    auto target = options_.attach_pid == 0
                      ? GuardTarget::Prepare(options_.command, session_)
                      : GuardTarget::Attach(options_.attach_pid, session_, options_.inject);
    if (!target.ok()) return target.error();
    target_.emplace(std::move(target).value());
    record::RecordOptions options;
    options.target.pids = {target_->pid()};
    options.path = RecordingPath();
    options.overwrite = Overwrite::kAllow;
    options.syscalls = true;
    options.syscall_stacks = false;
    options.sample_period_ns = 0;
    options.budget = 0;  // every system call counts
    options.ring_bytes *= 4;
    const record::RecordListener listener = {.should_stop = [&] { return IsOver(); }};
    return record::Record(options, listener);
  }

  std::string RecordingPath() const { return session_.path() + "/recording.ctrace"; }

  void End() {
    static_cast<void>(session_.Want(guard::wire::kRemove).ok());
    const uint64_t until_ns = guard::GuardClockNs() + 2 * kNsPerSecond;
    while (target_ && target_->alive() && !collector_.AllEnded() &&
           guard::GuardClockNs() < until_ns) {
      collector_.Poll({});
      SleepMs(10);
    }
    if (target_ && target_->alive()) guard::ReleaseSleepers(session_.path());
    if (target_ && target_->started() && !options_.keep_running) target_->End(SIGTERM);
    collector_.Finish({});
  }

  uint64_t lost_log_bytes() const { return collector_.Totals().lost_log_bytes; }

 private:
  static guard::CollectorOptions NoWatch() {
    guard::CollectorOptions options;
    options.watch = false;
    return options;
  }

  // Asked all the time while the recorder runs; the first time it is ready.
  bool IsOver() {
    if (begin_ns_ == 0) {
      begin_ns_ = guard::GuardClockNs();
      if (!target_->Release().ok()) return true;
    }
    collector_.Poll({});
    const bool full = session_.LogBytes() >= options_.log_bytes;
    if (full) output_.Note("the log is full: see --log-mb");
    const bool late = options_.for_ns != 0 && guard::GuardClockNs() - begin_ns_ >= options_.for_ns;
    return full || late || GuardSignals::Stop() != 0 || !target_->alive();
  }

  const CallsOptions& options_;
  Output& output_;
  guard::SessionFolder& session_;
  guard::Collector collector_;
  std::optional<GuardTarget> target_;
  uint64_t begin_ns_ = 0;
};

Status WriteCalls(const CallsOptions& options, const guard::SessionFolder& session,
                  const std::string& recording, Output& output) {
  CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(recording));
  Diagnostics diagnostics;
  CULPRIT_ASSIGN(
      const guard::AddedCalls added,
      guard::AddCalls(session.path(), reader, options.path, options.overwrite, diagnostics));
  for (const auto& [what, row] : diagnostics.rows()) {
    output.Warn(what + ": " + FormatCount(row.count));
  }
  if (added.entries == 0) {
    output.Warn("no function told of its entry: is the program linked dynamically?");
  }
  if (added.syscalls == 0) {
    return Error{.message = "no system call was recorded: there is nothing to profile",
                 .file = options.path,
                 .hint = "as root, or with CAP_BPF and CAP_PERFMON, the recorder sees them"};
  }
  output.Note("recorded " + FormatCount(added.syscalls) + " system calls, " +
              FormatShare(static_cast<int64_t>(added.owned), static_cast<int64_t>(added.syscalls)) +
              " of them in functions, of " + FormatCount(added.entries) + " entries " +
              FormatCount(added.calls) + " that made any");
  output.Note("next: culprit profile " + options.path + " -o app.cprof");
  return {};
}

Result<int> RunGuardCalls(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const CallsOptions options, ReadCallsOptions(arguments));
  if (options.attach_pid == 0) CULPRIT_TRY(guard::CheckProgram(options.command[0]));
  guard::SessionOptions session_options;
  session_options.needed_bytes += options.log_bytes;
  CULPRIT_ASSIGN(guard::SessionFolder session, guard::SessionFolder::Create(session_options));
  const GuardSignals signals;
  CallsRecording recording(options, output, session);
  const Result<record::RecordOutcome> outcome = recording.Run();
  recording.End();
  if (!outcome.ok()) return outcome.error();
  if (outcome.value().error) return *outcome.value().error;
  if (outcome.value().lost > 0) {
    output.Warn(FormatCount(outcome.value().lost) + " records were lost for want of room");
  }
  if (recording.lost_log_bytes() > 0) {
    output.Warn(FormatBytes(recording.lost_log_bytes()) + " of the log were lost for want of room");
  }
  CULPRIT_TRY(WriteCalls(options, session, recording.RecordingPath(), output));
  return 0;
}

}  // namespace

Command GuardCallsCommand() {
  Command command;
  command.name = "guard calls";
  command.summary = "record system calls with the functions that make them, without stacks";
  command.operands = "[-- COMMAND...]";
  command.max_operands = SIZE_MAX;
  command.examples = {{"sudo culprit guard calls --for 10s -o app.ctrace -- ./app",
                       "while a typical load runs against it; then culprit profile app.ctrace"},
                      {"sudo culprit guard calls --attach 1234 --for 10s -o app.ctrace",
                       "a process that runs already"}};
  command.flags = {
      {.name = "--output",
       .letter = 'o',
       .kind = ValueKind::kPath,
       .value = "FILE",
       .help = "the trace to write",
       .required = true},
      {.name = "--force", .help = "overwrite it"},
      {.name = "--attach",
       .kind = ValueKind::kText,
       .value = "PID",
       .help = "a process that runs already"},
      {.name = "--for",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "how long; 0s: until the program ends or Ctrl-C",
       .default_text = "10s"},
      {.name = "--log-mb",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "stop at so many megabytes of entries",
       .default_text = "1024"},
      {.name = "--keep-running", .help = "leave the program running afterwards"},
      {.name = "--allow-seccomp", .help = "attach to a process with a seccomp filter"}};
  command.details =
      "For culprit profile, of programs whose stacks cannot be walked. Every function writes its "
      "entry and the time of it, by the same injected library that guards use, and the recorder "
      "records the system calls; each call belongs to the functions it was made in. The program "
      "needs no source, no symbols and no change, and runs several times slower meanwhile. Kept "
      "are the functions in which system calls were made. A started program gets SIGTERM at the "
      "end.";
  command.run = &RunGuardCalls;
  return command;
}

}  // namespace culprit::cli
