// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/live_flags.h"
#include "cli/stop_signals.h"
#include "record/recorder.h"

namespace culprit::cli {
namespace {

using record::RecordOptions;
using record::RecordOutcome;

constexpr std::string_view kDefaultPath = "culprit.ctrace";

// Signal handlers can only reach globals.
volatile std::sig_atomic_t g_dump = 0;

// SIGUSR1 asks for a dump, for the time of a recording.
class DumpSignal {
 public:
  DumpSignal() {
    g_dump = 0;
    struct sigaction dump = {};
    dump.sa_handler = [](int) { g_dump = 1; };
    sigaction(SIGUSR1, &dump, &old_);
  }
  DumpSignal(const DumpSignal&) = delete;
  DumpSignal& operator=(const DumpSignal&) = delete;
  ~DumpSignal() { sigaction(SIGUSR1, &old_, nullptr); }

  // Has one come since the last question?
  static bool asked() {
    const bool asked = g_dump != 0;
    g_dump = 0;
    return asked;
  }

 private:
  struct sigaction old_ = {};
};

Status ReadLabels(const Arguments& arguments, RecordOptions& options) {
  for (const std::string& label : arguments.All("--label")) {
    const size_t equals = label.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Error{.message = "'" + label + "' is no label", .hint = "--label release=2.1"};
    }
    options.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return {};
}

Status ReadProbes(const Arguments& arguments, RecordOptions& options) {
  for (const std::string& text : arguments.All("--usdt")) {
    CULPRIT_ASSIGN(record::InstanceProbe probe, record::ParseUsdtProbe(text));
    options.probes.push_back(std::move(probe));
  }
  for (const std::string& text : arguments.All("--user-event")) {
    CULPRIT_ASSIGN(record::InstanceProbe probe, record::ParseEventProbe(text));
    options.probes.push_back(std::move(probe));
  }
  if (arguments.Has("--functions")) {
    CULPRIT_ASSIGN(options.functions, record::ParseFunctionRuntime(arguments.Text("--functions")));
  }
  return {};
}

Result<RecordOptions> ReadOptions(const Arguments& arguments) {
  RecordOptions options;
  options.command = arguments.operands();
  CULPRIT_ASSIGN(options.target, ReadTarget(arguments));
  if (options.target.empty() && options.command.empty()) {
    return Error{.message = "nothing to record",
                 .hint = "culprit record -- COMMAND, or --pid, --comm, --cgroup, --system"};
  }
  CULPRIT_TRY(ReadLabels(arguments, options));
  options.path = arguments.Has("--output") ? arguments.Text("--output") : std::string(kDefaultPath);
  options.overwrite = arguments.Has("--force") ? Overwrite::kAllow : Overwrite::kRefuse;
  options.duration_ns = arguments.DurationNs("--for");
  options.syscalls = arguments.Has("--syscalls");
  options.syscall_stacks = !arguments.Has("--no-syscall-stacks");
  options.marks = arguments.Has("--marks");
  CULPRIT_TRY(ReadProbes(arguments, options));
  options.symbols = !arguments.Has("--no-symbols");
  const uint64_t frequency = arguments.Number("--frequency");
  if (frequency > 10'000) return Error{.message = "--frequency goes up to 10000 a second"};
  options.sample_period_ns = frequency == 0 ? 0 : 1'000'000'000 / static_cast<int64_t>(frequency);
  options.min_wait_ns = arguments.DurationNs("--min-wait");
  CULPRIT_ASSIGN(options.budget, ReadBudget(arguments));
  // Then nothing bounds how fast the ring fills.
  if (options.budget == 0) options.ring_bytes *= 4;
  options.flight_ns = arguments.DurationNs("--flight");
  options.triggers.wait_ns = arguments.DurationNs("--dump-on-wait");
  options.triggers.mark = arguments.Text("--dump-on-mark");
  options.triggers.failure = arguments.Has("--dump-on-failure");
  const bool triggered =
      options.triggers.wait_ns > 0 || !options.triggers.mark.empty() || options.triggers.failure;
  if (triggered && options.flight_ns == 0) {
    return Error{.message = "a trigger writes the memory of a flight recorder",
                 .hint = "add --flight 60s"};
  }
  options.tier = ReadTier(arguments);
  return options;
}

void PrintOutcome(const RecordOutcome& outcome, const RecordOptions& options, Output& output) {
  const auto count = [](uint64_t n) { return FormatCount(n); };
  std::string line = "recorded " + FormatDuration(outcome.dur_ns) + " by " +
                     std::string(Name(outcome.tier)) + ": " + count(outcome.events) + " events, " +
                     count(outcome.waits) + " waits";
  if (outcome.bytes > 0) line += ", " + FormatBytes(outcome.bytes);
  output.Note(line);
  if (!Blindness(outcome.tier).empty()) {
    output.Note("  not seen: " + std::string(Blindness(outcome.tier)));
  }
  if (outcome.user_stacks > 0) {
    output.Note("  " +
                FormatShare(static_cast<int64_t>(outcome.complete_stacks),
                            static_cast<int64_t>(outcome.user_stacks)) +
                " of " + count(outcome.user_stacks) + " user stacks reach the thread's start");
  }
  if (outcome.tier == record::Tier::kBpf) {
    output.Note("  cost " + FormatDuration(outcome.kernel_ns + outcome.own_ns) + " of CPU (" +
                FormatDuration(outcome.kernel_ns) + " in the kernel) beside " +
                FormatDuration(outcome.busy_ns) + " of the recorded threads: " +
                FormatShare(static_cast<int64_t>(outcome.overhead * 1e6), 1'000'000));
  }
  if (outcome.left_out > 0) {
    output.Note("  " + count(outcome.left_out) + " short waits are in sums only" +
                (outcome.highest_level > 0
                     ? " (the budget of " +
                           FormatShare(static_cast<int64_t>(options.budget * 1e6), 1'000'000) +
                           " was used up)"
                     : ""));
  }
  if (outcome.lost > 0) {
    output.Warn(count(outcome.lost) + " records were lost for want of room; their time is in sums");
  }
  for (const auto& [what, row] : outcome.diagnostics.rows()) {
    output.Note("  " + what + ": " + count(row.count));
  }
}

Result<int> RunRecord(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const RecordOptions options, ReadOptions(arguments));
  const StopSignals stop;
  const DumpSignal dump;
  const record::RecordListener listener = {
      .should_stop = [&] { return stop.asked(); },
      .should_dump = [] { return DumpSignal::asked(); },
      .note = [&](std::string_view text) { output.Note(text); }};
  CULPRIT_ASSIGN(const RecordOutcome outcome, record::Record(options, listener));
  PrintOutcome(outcome, options, output);
  if (outcome.error) return *outcome.error;
  if (outcome.command_runs_on) output.Note("the command runs on");
  if (outcome.paths.empty()) {
    output.Note("nothing was written: no dump was asked for");
  } else {
    output.Note("next: culprit info " + outcome.paths.back());
  }
  return outcome.exit_code.value_or(0);
}

}  // namespace

Command RecordCommand() {
  return {
      .name = "record",
      .summary = "record what threads do and wait for, on this machine, into a trace",
      .operands = "[-- COMMAND...]",
      .min_operands = 0,
      .max_operands = SIZE_MAX,
      .examples = {{"sudo culprit record -- ./app", "a command, from its start to its end"},
                   {"sudo culprit record --for 10s --comm nginx -o slow.ctrace",
                    "whoever has that name, for ten seconds"},
                   {"sudo culprit record --flight 60s --system --dump-on-wait 2s",
                    "keep the last minute, write it when a thread waits for two seconds"}},
      .flags = {{.name = "--output",
                 .letter = 'o',
                 .kind = ValueKind::kPath,
                 .value = "FILE",
                 .help = "the trace to write; of a flight recorder FILE-1, FILE-2 and so on"},
                {.name = "--force", .help = "overwrite it"},
                {.name = "--for",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "stop after this long"},
                {.name = "--pid",
                 .letter = 'p',
                 .kind = ValueKind::kText,
                 .value = "PID",
                 .help = "record this process and its children; may be repeated"},
                {.name = "--comm",
                 .kind = ValueKind::kText,
                 .value = "NAME",
                 .help = "record processes of this name, also later ones; up to four"},
                {.name = "--cgroup",
                 .kind = ValueKind::kText,
                 .value = "PATH",
                 .help = "record the processes of this cgroup, also those that join it later"},
                {.name = "--system", .letter = 'a', .help = "record every thread"},
                {.name = "--syscalls", .help = "record system calls too"},
                {.name = "--no-syscall-stacks",
                 .help = "system calls without the stacks they were made on: all that culprit "
                         "infer needs, and cheaper"},
                {.name = "--marks", .help = "record what programs write to trace_marker"},
                {.name = "--usdt",
                 .kind = ValueKind::kText,
                 .value = "[FILE:]PROVIDER:BEGIN..END[=NAME]",
                 .help = "instances between two USDT probes of a thread; may be repeated"},
                {.name = "--user-event",
                 .kind = ValueKind::kText,
                 .value = "[GROUP:]BEGIN..END[=NAME]",
                 .help = "the same between two trace events, of user_events if no group is named"},
                {.name = "--functions",
                 .kind = ValueKind::kText,
                 .value = "RUNTIME[=FILE]",
                 .help = "entries and exits of interpreted functions, by the interpreter's probes: "
                         "python; slows it down"},
                {.name = "--frequency",
                 .letter = 'F',
                 .kind = ValueKind::kNumber,
                 .value = "N",
                 .help = "samples a second of running threads; 0: none",
                 .default_text = "1000"},
                {.name = "--min-wait",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "only sum up waits shorter than this"},
                {.name = "--budget",
                 .kind = ValueKind::kText,
                 .value = "SHARE",
                 .help = "what recording may cost of the recorded threads' CPU time; 0: no bound",
                 .default_text = "3%"},
                {.name = "--flight",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "keep only the last TIME, in memory, and write it when asked"},
                {.name = "--dump-on-wait",
                 .kind = ValueKind::kDuration,
                 .value = "TIME",
                 .help = "write it when a thread has waited this long"},
                {.name = "--dump-on-mark",
                 .kind = ValueKind::kText,
                 .value = "NAME",
                 .help = "write it when a mark of this name comes"},
                {.name = "--dump-on-failure",
                 .help = "write it when the command ends with another code than 0"},
                {.name = "--label",
                 .kind = ValueKind::kText,
                 .value = "KEY=VALUE",
                 .help = "label the trace; may be repeated"},
                {.name = "--no-symbols", .help = "leave addresses as they are"},
                {.name = "--tier",
                 .kind = ValueKind::kChoice,
                 .value = "TIER",
                 .help = "record in this way, not in the best there is",
                 .default_text = "best",
                 .choices = {"best", "bpf", "perf", "perf-own"}}},
      .details =
          "Every thread's time is recorded whole: running, waiting (with the stack, who ended the "
          "wait, and from where), ready to run but not running; beside it samples, disk requests "
          "and interrupts. Symbols are looked up while recording.\n\n"
          "Recording costs CPU time. It is measured all the time; when it exceeds the budget, "
          "stacks of wakers, then ever longer waits are left out, and only summed up per thread. "
          "What was done when is in the trace as markers of [culprit].\n\n"
          "Ends with the command's exit code.",
      .run = &RunRecord,
  };
}

}  // namespace culprit::cli
