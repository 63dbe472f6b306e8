// SPDX-License-Identifier: Apache-2.0
//
// culprit watch: guards, the flight recorder, the corpus and the analysis as one
// loop. The recorder is a process of its own, so that its kernel programs go with
// it whatever happens here.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/program.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/guard_commands.h"
#include "cli/guard_target.h"
#include "cli/live_flags.h"
#include "cli/mine_options.h"
#include "cli/watch_process.h"
#include "guard/proc_file.h"
#include "guard/program_check.h"
#include "guard/session_folder.h"
#include "watch/intake.h"
#include "watch/process_family.h"

namespace culprit::cli {
namespace {

using guard::GuardClockNs;

constexpr int64_t kEndRoundMs = 10;
constexpr int64_t kFindRoundMs = 500;
constexpr int64_t kAgainMs = 5'000;  // after a failure

Result<WatchSettings> ReadWatchSettings(const Arguments& arguments) {
  WatchSettings settings;
  settings.command = arguments.operands();
  settings.comm = arguments.Text("--comm");
  if (arguments.Has("--attach")) {
    CULPRIT_ASSIGN(settings.pid, ParsePid(arguments.Text("--attach")));
  }
  const int given = (settings.command.empty() ? 0 : 1) + (settings.pid == 0 ? 0 : 1) +
                    (settings.comm.empty() ? 0 : 1);
  if (given != 1) {
    return Error{.message = "say what to watch: a command, --attach PID or --comm NAME",
                 .hint = "culprit watch -- COMMAND..."};
  }
  CULPRIT_ASSIGN(settings.culprit, OwnProgram());
  const std::string name = !settings.comm.empty() ? settings.comm
                           : settings.command.empty()
                               ? std::string(BaseName(guard::ProcLink(settings.pid, "exe")))
                               : std::string(BaseName(settings.command[0]));
  settings.state = arguments.Text("--state");
  if (settings.state.empty()) {
    CULPRIT_ASSIGN(settings.state, watch::DefaultStateFolder(name));
  }
  settings.train_ns = static_cast<uint64_t>(arguments.DurationNs("--train-for"));
  settings.flight_ns = static_cast<uint64_t>(arguments.DurationNs("--flight"));
  settings.for_ns = static_cast<uint64_t>(arguments.DurationNs("--for"));
  const std::optional<uint64_t> bytes = ParseBytes(arguments.Text("--max-disk"));
  if (!bytes) return Error{.message = "--max-disk takes a size such as 512MB or 4GB"};
  settings.max_bytes = *bytes;
  settings.sample_every = arguments.Number("--sample-every");
  settings.retrain = arguments.Has("--retrain");
  settings.record = !arguments.Has("--no-traces");
  CULPRIT_ASSIGN(settings.budget_ppm, ReadBudgetPpm(arguments));
  // A third for the guards, a sixth for looks at them, what is left for the recorder.
  settings.look_ppm = settings.budget_ppm / 6;
  settings.guard_ppm =
      settings.record ? settings.budget_ppm / 3 : settings.budget_ppm - settings.look_ppm;
  return settings;
}

void TakeLeftDumps(const watch::StateFolder& folder, Output& output) {
  for (const std::string& path : folder.LeftDumps()) {
    const Status taken = watch::TakeInDump(folder, path);
    if (!taken.ok()) output.Warn(path + ": " + taken.error().ToString());
  }
}

int64_t FindByName(const std::string& comm) {
  std::error_code code;
  for (std::filesystem::directory_iterator it("/proc", code), end; !code && it != end;
       it.increment(code)) {
    const std::string pid = it->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(it->path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name == comm) return std::stoll(pid);
  }
  return 0;
}

// The server is watched as long as it lives; what fails is tried again, because a
// server without work cannot be learnt yet, and must not end for that.
void WatchWhileItLives(const Watched& watched, int64_t pid) {
  for (uint32_t attempt = 0; watched.Alive(pid) && !watched.Over(); ++attempt) {
    const Status status = WatchProcess(watched, pid, attempt);
    if (status.ok()) return;
    if (!watched.Alive(pid)) return;
    watched.output.Warn(status.error().ToString());
    const uint64_t again_ns = GuardClockNs() + kAgainMs * 1'000'000;
    while (GuardClockNs() < again_ns && watched.Alive(pid) && !watched.Over()) SleepMs(kEndRoundMs);
  }
}

// Starts the command and watches it; its exit code.
Result<int> WatchCommandToItsEnd(Watched watched) {
  CULPRIT_ASSIGN(record::ChildProcess child,
                 record::ChildProcess::Prepare(watched.settings.command));
  CULPRIT_TRY(child.Release());
  watched.child = &child;
  const std::string program = watch::SettledProgram(child.pid());
  Status fit;
  if (!program.empty()) {
    const auto checked = guard::CheckProgram(program);
    if (!checked.ok()) fit = checked.error();
  }
  if (fit.ok()) WatchWhileItLives(watched, child.pid());
  if (!child.ExitCode()) kill(child.pid(), SIGTERM);
  while (!child.ExitCode()) SleepMs(kEndRoundMs);
  CULPRIT_TRY(fit);
  return child.ExitCode().value_or(0);
}

// Whoever has the name, again whenever such a process appears.
void WatchByName(const Watched& watched) {
  bool waiting = false;
  while (!watched.Over()) {
    const int64_t pid = FindByName(watched.settings.comm);
    if (pid != 0) WatchWhileItLives(watched, pid);
    if (pid == 0 && !waiting) {
      watched.output.Note("waiting for a process named " + watched.settings.comm);
    }
    waiting = pid == 0;
    if (!watched.Over()) SleepMs(kFindRoundMs);
  }
}

Result<int> RunWatch(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const WatchSettings settings, ReadWatchSettings(arguments));
  CULPRIT_ASSIGN(const watch::StateFolder folder, watch::StateFolder::Open(settings.state));
  TakeLeftDumps(folder, output);
  const GuardSignals signals;
  const Watched watched{settings, folder, output, GuardClockNs(), nullptr};
  int code = 0;
  if (!settings.command.empty()) {
    CULPRIT_ASSIGN(code, WatchCommandToItsEnd(watched));
  } else if (settings.pid != 0) {
    if (!watched.Alive(settings.pid)) {
      return Error{.message = "there is no process " + std::to_string(settings.pid)};
    }
    CULPRIT_TRY(guard::CheckProgram(guard::ProcLink(settings.pid, "exe")));
    WatchWhileItLives(watched, settings.pid);
  } else {
    WatchByName(watched);
  }
  output.Note("next: culprit inbox " + folder.Corpus() + " --store " + folder.Signatures());
  return code;
}

}  // namespace

Command WatchCommand() {
  Command command;
  command.name = "watch";
  command.summary = "guard a program, trace its slow units, analyse them: the whole loop";
  command.operands = "[-- COMMAND...]";
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"sudo culprit watch -- redis-server --port 7000", "a command, from its start to its end"},
      {"sudo culprit watch --attach 1234", "a process that runs"},
      {"sudo culprit watch --comm mariadbd", "whoever has that name, again after it restarts"}};
  command.flags = {
      {.name = "--attach", .kind = ValueKind::kText, .value = "PID", .help = "watch this process"},
      {.name = "--comm",
       .kind = ValueKind::kText,
       .value = "NAME",
       .help = "watch the process of this name, and the next one after it"},
      {.name = "--state",
       .kind = ValueKind::kPath,
       .value = "FOLDER",
       .help = "what is kept: profiles, corpus, reports, inbox; by default /var/lib/culprit/NAME, "
               "or in the user's data folder"},
      {.name = "--train-for",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "how long a program that is not known is learnt",
       .default_text = "60s"},
      {.name = "--retrain", .help = "learn it again although it is known"},
      {.name = "--flight",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "how much the recorder remembers, and a trace holds",
       .default_text = "10s"},
      {.name = "--no-traces", .help = "guards only, without the recorder"},
      {.name = "--budget",
       .kind = ValueKind::kText,
       .value = "SHARE",
       .help = "what guards, looks at them and the recorder together may cost",
       .default_text = "3%"},
      {.name = "--sample-every",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "every so many units stand in the traces as instances to compare with",
       .default_text = "100"},
      {.name = "--max-disk",
       .kind = ValueKind::kText,
       .value = "SIZE",
       .help = "of traces; beyond, the oldest of the most frequent type go",
       .default_text = "2GB"},
      {.name = "--for",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "end after this long"}};
  command.details =
      "Learns the program's units and their normal times once per build, then guards them. A unit "
      "that takes too long is reported; the flight recorder writes the time around it, the unit "
      "and a sample of ordinary ones become instances of that trace, and the trace joins the "
      "corpus, which is analysed in the background. The first slow units of a type get a trace, "
      "then ever fewer; all are counted. What a killed watch left is taken in by the next.";
  command.run = &RunWatch;
  return command;
}

}  // namespace culprit::cli
