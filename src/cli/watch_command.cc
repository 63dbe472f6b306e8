// SPDX-License-Identifier: Apache-2.0
//
// culprit watch: guards, the flight recorder, the corpus and the analysis as one
// loop. The recorder is a process of its own, so that its kernel programs go with
// it whatever happens here.
#include <signal.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/program.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/guard_commands.h"
#include "cli/guard_target.h"
#include "cli/guard_text.h"
#include "cli/mine_options.h"
#include "guard/collector.h"
#include "guard/plan_builder.h"
#include "guard/proc_file.h"
#include "guard/profile_file.h"
#include "guard/violation_store.h"
#include "record/child_process.h"
#include "record/control_socket.h"
#include "watch/analyst.h"
#include "watch/dump_policy.h"
#include "watch/intake.h"

namespace culprit::cli {
namespace {

using guard::GuardClockNs;
using guard::UnitReport;

constexpr uint32_t kWatchPlan = 1;
constexpr int64_t kWatchRoundMs = 10;
constexpr int64_t kFindRoundMs = 500;
constexpr size_t kMostPassed = 100'000;
constexpr std::chrono::minutes kLongestTraining{30};

struct WatchSettings {
  std::vector<std::string> command;
  int64_t pid = 0;
  std::string comm;
  std::string state;
  std::string culprit;  // this program
  uint64_t train_ns = 0;
  uint64_t flight_ns = 0;
  uint64_t for_ns = 0;
  uint64_t max_bytes = 0;
  uint64_t sample_every = 0;
  uint64_t guard_ppm = 0;  // of the budget
  uint64_t record_ppm = 0;
  bool retrain = false;
  bool record = true;
};

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
  CULPRIT_ASSIGN(const uint64_t ppm, ParseBudgetPpm(arguments.Text("--budget")));
  // A third for the guards, the rest for the recorder.
  settings.guard_ppm = settings.record ? ppm / 3 : ppm;
  settings.record_ppm = ppm - settings.guard_ppm;
  return settings;
}

// The flight recorder of one process.
class FlightRecorder {
 public:
  static Result<FlightRecorder> Start(const WatchSettings& settings,
                                      const watch::StateFolder& folder, int64_t pid) {
    const std::string name = folder.Dumps() + "/" + std::to_string(GuardClockNs()) + ".ctrace";
    CULPRIT_ASSIGN(
        RunningProgram program,
        RunningProgram::Start(
            {settings.culprit, "record", "--flight",
             std::to_string(settings.flight_ns / 1'000'000) + "ms", "--pid", std::to_string(pid),
             "--budget", std::to_string(static_cast<double>(settings.record_ppm) / 1e4) + "%",
             "--output", name},
            folder.path() + "/recorder.log"));
    return FlightRecorder(std::move(program));
  }

  bool running() { return !program_.Poll().has_value(); }
  void End() { program_.Terminate(); }
  pid_t pid() const { return program_.pid(); }

  static Result<std::string> Dump(pid_t pid) {
    for (const record::RunningRecorder& recorder : record::FindRecorders()) {
      if (recorder.pid != pid) continue;
      CULPRIT_ASSIGN(const std::string answer, record::Ask(recorder, "dump"));
      if (answer.starts_with("ok ")) return answer.substr(3);
      return Error{.message = "the recorder could not write: " + answer};
    }
    return Error{.message = "the recorder does not run"};
  }

 private:
  explicit FlightRecorder(RunningProgram program) : program_(std::move(program)) {}
  RunningProgram program_;
};

// The profile of the program, learnt first if it is not known yet.
Result<guard::Profile> ProfileFor(const WatchSettings& settings, const watch::StateFolder& folder,
                                  int64_t pid, Output& output) {
  CULPRIT_ASSIGN(const guard::ProgramFacts program,
                 guard::CheckProgram(guard::ProcLink(pid, "exe")));
  const std::string id = program.build_id.empty() ? "no-build-id" : program.build_id;
  const std::string path = folder.ProfileOf(id);
  std::error_code code;
  if (!settings.retrain && std::filesystem::exists(path, code)) {
    auto profile = guard::ReadProfile(path);
    // Libraries change too: then what was learnt is of no use.
    if (profile.ok() && guard::CheckBuildIds(profile.value(), program).ok()) return profile;
    output.Note("the program changed since it was learnt: learning it again");
  }
  output.Note("learning the program's units for " +
              FormatDuration(static_cast<int64_t>(settings.train_ns)) +
              ": it should do its usual work meanwhile");
  const std::vector<std::string> words = {settings.culprit,
                                          "guard",
                                          "train",
                                          "--attach",
                                          std::to_string(pid),
                                          "--for",
                                          std::to_string(settings.train_ns / 1'000'000) + "ms",
                                          "--keep-running",
                                          "--force",
                                          "-o",
                                          path};
  CULPRIT_ASSIGN(const ProgramOutput trained, RunProgram(words, kLongestTraining));
  if (trained.code != 0) {
    return Error{.message = "learning failed: " + trained.err.substr(0, 400),
                 .hint = "is there work for the program to do? --train-for gives more time"};
  }
  return guard::ReadProfile(path);
}

// What happens to slow units: printed, stored, and some become traces.
class WatchDesk {
 public:
  WatchDesk(guard::ViolationStore store, watch::Intake* intake, uint64_t window_ns, Output& output)
      : store_(std::move(store)), intake_(intake), window_ns_(window_ns), output_(output) {}

  void Take(const UnitReport& report) {
    output_.Print(GuardReportText(report, output_.color()));
    const Status stored = store_.Append(report);
    if (!stored.ok() && !warned_) output_.Warn(stored.error().ToString());
    warned_ = warned_ || !stored.ok();
    if (report.state == UnitReport::State::kHungEnded) return;
    ++reports;
    if (intake_ == nullptr || !policy_.Wants(report.type_name, GuardClockNs())) return;
    watch::SlowUnit unit{report, {passed_.begin(), passed_.end()}};
    if (!intake_->Take(std::move(unit))) ++not_taken;
  }

  void Take(int64_t pid, std::span<const guard::wire::Sample> samples) {
    for (const guard::wire::Sample& sample : samples) passed_.push_back({pid, sample});
    const uint64_t now_ns = GuardClockNs();
    const uint64_t oldest_ns = now_ns > window_ns_ ? now_ns - window_ns_ : 0;
    while (!passed_.empty() &&
           (passed_.size() > kMostPassed || passed_.front().sample.begin_ns < oldest_ns)) {
      passed_.pop_front();
    }
  }

  const watch::DumpPolicy& policy() const { return policy_; }
  uint64_t reports = 0;
  uint64_t not_taken = 0;

 private:
  guard::ViolationStore store_;
  watch::Intake* intake_;
  const uint64_t window_ns_;
  Output& output_;
  watch::DumpPolicy policy_;
  std::deque<watch::PassedUnit> passed_;
  bool warned_ = false;
};

void TakeLeftDumps(const watch::StateFolder& folder, Output& output) {
  for (const std::string& path : folder.LeftDumps()) {
    const std::string name = "left-" + std::filesystem::path(path).stem().string();
    const Status taken = watch::TakeIn(folder, path, name, "");
    if (!taken.ok()) output.Warn(path + ": " + taken.error().ToString());
  }
}

struct Watched {
  const WatchSettings& settings;
  const watch::StateFolder& folder;
  Output& output;
  uint64_t begin_ns = 0;
  record::ChildProcess* child = nullptr;  // the command, if it was started here

  bool Over() const {
    return GuardSignals::Stop() != 0 ||
           (settings.for_ns != 0 && GuardClockNs() - begin_ns >= settings.for_ns);
  }
  bool Alive(int64_t pid) const {
    if (child != nullptr) return !child->ExitCode().has_value();
    return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
  }
};

// One process, until it ends or the watch does.
Status WatchProcess(const Watched& watched, int64_t pid) {
  const WatchSettings& settings = watched.settings;
  CULPRIT_ASSIGN(const guard::Profile profile,
                 ProfileFor(settings, watched.folder, pid, watched.output));
  std::optional<FlightRecorder> recorder;
  if (settings.record) {
    CULPRIT_ASSIGN(FlightRecorder started, FlightRecorder::Start(settings, watched.folder, pid));
    recorder.emplace(std::move(started));
  }
  CULPRIT_ASSIGN(guard::SessionFolder session, guard::SessionFolder::Create());
  guard::PlanOptions plan_options;
  plan_options.budget_ppm = settings.guard_ppm;
  plan_options.sample_every = static_cast<uint32_t>(settings.sample_every);
  guard::PlanFacts facts;
  const std::string plan =
      guard::BuildPlan(profile, guard::wire::Mode::kGuard, plan_options, &facts);
  CULPRIT_TRY(session.WritePlan(kWatchPlan, plan));
  CULPRIT_TRY(session.Want(kWatchPlan));
  CULPRIT_TRY(GuardTarget::Attach(pid, session, {}));
  CULPRIT_ASSIGN(guard::ViolationStore store,
                 guard::ViolationStore::Open(watched.folder.Reports()));
  std::optional<watch::Intake> intake;
  if (recorder) {
    const pid_t recorder_pid = recorder->pid();
    intake.emplace(watched.folder, profile,
                   watch::IntakeOptions{.max_corpus_bytes = settings.max_bytes},
                   [recorder_pid] { return FlightRecorder::Dump(recorder_pid); });
  }
  WatchDesk desk(std::move(store), intake ? &*intake : nullptr, settings.flight_ns, watched.output);
  watch::Analyst analyst(watched.folder, settings.culprit);
  guard::Collector collector(session, {});
  collector.Use(profile, plan);
  guard::CollectorSink sink;
  sink.report = [&](const UnitReport& report) { desk.Take(report); };
  sink.samples = [&](int64_t of, std::span<const guard::wire::Sample> samples) {
    desk.Take(of, samples);
  };
  watched.output.Note("watching process " + std::to_string(pid) + ": " + FormatCount(facts.guards) +
                      " guards, expected to cost " +
                      FormatShare(static_cast<int64_t>(facts.cost_ppm), 1'000'000) +
                      "; inbox: " + watched.folder.InboxFile());
  bool told = false;
  while (watched.Alive(pid) && !watched.Over()) {
    collector.Poll(sink);
    if (intake) analyst.Poll(intake->counts().taken, GuardClockNs());
    if (recorder && !told && !recorder->running()) {
      watched.output.Warn("the recorder ended: slow units are reported without traces; see " +
                          watched.folder.path() + "/recorder.log");
      told = true;
    }
    SleepMs(kWatchRoundMs);
  }
  collector.Poll(sink);
  CULPRIT_TRY(session.Want(guard::wire::kRemove));
  const uint64_t until_ns = GuardClockNs() + 2'000'000'000;
  while (watched.Alive(pid) && !collector.AllEnded() && GuardClockNs() < until_ns) {
    collector.Poll(sink);
    SleepMs(kWatchRoundMs);
  }
  const guard::SessionTotals totals = collector.Totals();
  watch::Intake::Counts counts;
  if (intake) {
    // The queue is worked off while the recorder still runs.
    const uint64_t patience_ns = GuardClockNs() + 30'000'000'000;
    uint64_t wanted = 0;
    for (const auto& [type, count] : desk.policy().counts()) wanted += count.dumped;
    wanted -= desk.not_taken;
    while (intake->counts().taken + intake->counts().failed < wanted &&
           GuardClockNs() < patience_ns) {
      SleepMs(kWatchRoundMs);
    }
    counts = intake->counts();
    intake.reset();
  }
  if (recorder) recorder->End();
  analyst.Finish(counts.taken);
  watched.output.Note(FormatCount(totals.units) + " units, " + FormatCount(desk.reports) +
                      " slow; " + FormatCount(counts.taken) + " traces taken in, " +
                      FormatCount(counts.evicted) + " evicted, " + FormatCount(counts.failed) +
                      " failed" +
                      (counts.last_error.empty() ? "" : " (" + counts.last_error + ")"));
  return {};
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

Result<int> RunWatch(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const WatchSettings settings, ReadWatchSettings(arguments));
  CULPRIT_ASSIGN(const watch::StateFolder folder, watch::StateFolder::Open(settings.state));
  TakeLeftDumps(folder, output);
  const GuardSignals signals;
  Watched watched{settings, folder, output, GuardClockNs(), nullptr};
  if (!settings.command.empty()) {
    CULPRIT_TRY(guard::CheckProgram(settings.command[0]));
    CULPRIT_ASSIGN(record::ChildProcess child, record::ChildProcess::Prepare(settings.command));
    CULPRIT_TRY(child.Release());
    watched.child = &child;
    const Status status = WatchProcess(watched, child.pid());
    if (!child.ExitCode()) kill(child.pid(), SIGTERM);
    while (!child.ExitCode()) SleepMs(kWatchRoundMs);
    CULPRIT_TRY(status);
    output.Note("next: culprit inbox " + folder.Corpus() + " --store " + folder.Signatures());
    return child.ExitCode().value_or(0);
  }
  if (settings.pid != 0) {
    CULPRIT_TRY(WatchProcess(watched, settings.pid));
  }
  // By name: again whenever such a process appears.
  bool waiting = false;
  while (!settings.comm.empty() && !watched.Over()) {
    const int64_t pid = FindByName(settings.comm);
    if (pid == 0) {
      if (!waiting) output.Note("waiting for a process named " + settings.comm);
      waiting = true;
      SleepMs(kFindRoundMs);
      continue;
    }
    waiting = false;
    const Status status = WatchProcess(watched, pid);
    if (!status.ok()) {
      output.Warn(status.error().ToString());
      SleepMs(10 * kFindRoundMs);
    }
  }
  output.Note("next: culprit inbox " + folder.Corpus() + " --store " + folder.Signatures());
  return 0;
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
       .help = "what guards and recorder together may cost",
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
