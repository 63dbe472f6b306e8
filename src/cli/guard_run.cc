// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/guard_commands.h"
#include "cli/guard_target.h"
#include "cli/guard_text.h"
#include "cli/live_flags.h"
#include "cli/own_cost.h"
#include "guard/collector.h"
#include "guard/plan_builder.h"
#include "guard/profile_file.h"
#include "guard/program_check.h"
#include "guard/unit_export.h"
#include "guard/violation_hook.h"
#include "guard/violation_store.h"
#include "record/control_socket.h"

namespace culprit::cli {
namespace {

using guard::GuardClockNs;
using guard::Profile;
using guard::UnitReport;
using guard::ViolationHook;

constexpr uint32_t kGuardPlan = 1;
constexpr int64_t kGuardRoundMs = 10;
constexpr int kCollectorNice = -10;
// Whether the program ended: a system call, which not every round is to pay.
constexpr uint64_t kAskForEndNs = 18'000'000;

struct WatchFlags {
  std::string store;
  std::string on_violation;
  std::string units;
  uint64_t pause_ns = 0;
  uint64_t for_ns = 0;
  uint64_t budget_ppm = 0;
  uint64_t sample_every = 0;
  bool flight = false;
  bool json = false;
  guard::CollectorOptions collector;
};

// Loops that spin are told by their samples; so few cost nothing.
constexpr uint64_t kSampleForSpins = 1000;

Result<WatchFlags> ReadWatchFlags(const Arguments& arguments) {
  WatchFlags flags;
  flags.store = arguments.Text("--store");
  flags.on_violation = arguments.Text("--on-violation");
  flags.units = arguments.Text("--units");
  flags.pause_ns = static_cast<uint64_t>(arguments.DurationNs("--pause"));
  flags.for_ns = static_cast<uint64_t>(arguments.DurationNs("--for"));
  flags.flight = arguments.Has("--flight");
  flags.json = arguments.Has("--json");
  flags.sample_every = flags.units.empty() ? kSampleForSpins : arguments.Number("--sample-every");
  flags.collector.watch = !arguments.Has("--no-looks");
  flags.collector.hang.hang_ns = static_cast<uint64_t>(arguments.DurationNs("--hang"));
  CULPRIT_ASSIGN(flags.budget_ppm, ReadBudgetPpm(arguments));
  return flags;
}

// In a child: tells the recorders what the unit was, then has them write.
int DumpFlights(const UnitReport& report) {
  int failed = 0;
  for (const record::RunningRecorder& recorder : record::FindRecorders()) {
    const std::string tid = std::to_string(report.tid);
    const std::string name = report.type_name + "|" + tid;
    const auto mark = [&](const char* verb, uint64_t time_ns) {
      return record::Ask(recorder, record::FormatMark({.time_ns = static_cast<int64_t>(time_ns),
                                                       .pid = report.tid,
                                                       .text = verb + ("|" + tid + "|" + name)}));
    };
    const bool told =
        mark("S", report.begin_ns).ok() && mark("F", report.begin_ns + report.wall_ns).ok();
    const auto answer = record::Ask(recorder, "dump");
    if (!told || !answer.ok() || !answer.value().starts_with("ok ")) ++failed;
  }
  return failed;
}

// Everything that happens to a slow unit after it was found.
class ReportDesk {
 public:
  static Result<ReportDesk> Open(const WatchFlags& flags, const Profile& profile, Output& output) {
    ReportDesk desk(flags, output);
    if (!flags.store.empty()) {
      CULPRIT_ASSIGN(guard::ViolationStore store, guard::ViolationStore::Open(flags.store));
      desk.store_.emplace(std::move(store));
    }
    if (!flags.on_violation.empty()) {
      desk.hooks_.push_back(ViolationHook::OfCommand(flags.on_violation, flags.pause_ns));
    }
    if (flags.flight) {
      desk.hooks_.emplace_back(&DumpFlights, flags.pause_ns);
      if (record::FindRecorders().empty()) {
        output.Warn("no flight recorder is running yet: culprit record --system --flight 60s");
      }
    }
    if (!flags.units.empty()) desk.units_.emplace(profile);
    return desk;
  }

  void Take(const UnitReport& report) {
    Count(report);
    output_.Print(flags_.json ? ToJson(report) + "\n" : GuardReportText(report, output_.color()));
    output_.Flush();
    if (store_) {
      const Status stored = store_->Append(report);
      if (!stored.ok() && !warned_) output_.Warn(stored.error().ToString());
      warned_ = warned_ || !stored.ok();
    }
    if (report.state != UnitReport::State::kHungEnded) {
      for (ViolationHook& hook : hooks_) hook.Offer(report);
    }
    if (units_) units_->Add(report);
  }

  void Take(int64_t pid, std::span<const guard::wire::Sample> samples) {
    if (units_) units_->Add(pid, samples);
  }

  Status Finish() {
    if (store_ && store_->refused() > 0) {
      output_.Warn(FormatCount(store_->refused()) + " reports found no room in " +
                   store_->folder());
    }
    for (ViolationHook& hook : hooks_) {
      hook.WaitForLast(kNsPerSecond);
      if (hook.failed() > 0) output_.Warn(FormatCount(hook.failed()) + " hooks failed");
    }
    if (!units_) return {};
    CULPRIT_TRY(units_->Write(flags_.units, Overwrite::kAllow));
    output_.Note("wrote " + FormatCount(units_->units()) + " units to " + flags_.units);
    return {};
  }

  GuardSummary summary;

 private:
  ReportDesk(const WatchFlags& flags, Output& output) : flags_(flags), output_(output) {}

  // Every slow unit once; one that hung by what it was at its end, when more of it was seen.
  void Count(const UnitReport& report) {
    if (report.state == UnitReport::State::kHungEnded) {
      const auto hung = hanging_.find(report.tid);
      if (hung == hanging_.end()) return;
      const auto before = summary.by_type.find(hung->second);
      if (--before->second.first == 0) summary.by_type.erase(before);
      hanging_.erase(hung);
    } else {
      ++summary.reports;
    }
    if (report.state == UnitReport::State::kHangs) hanging_[report.tid] = report.type_name;
    auto& [count, longest] = summary.by_type[report.type_name];
    ++count;
    longest = std::max(longest, report.counted_ns());
  }

  const WatchFlags& flags_;
  Output& output_;
  std::optional<guard::ViolationStore> store_;
  std::vector<ViolationHook> hooks_;
  std::optional<guard::UnitTraceMaker> units_;
  std::map<int64_t, std::string> hanging_;  // tid -> the type it was reported with
  bool warned_ = false;
};

struct WatchSession {
  const Profile& profile;
  const WatchFlags& flags;
  guard::SessionFolder& session;
  std::string plan;
  guard::PlanFacts facts;
};

// Looks on until the program ends, the time is over or a signal comes.
Status Watch(const WatchSession& watch, GuardTarget& target, ReportDesk& desk) {
  guard::Collector collector(watch.session, watch.flags.collector);
  collector.Use(watch.profile, watch.plan);
  guard::CollectorSink sink;
  sink.report = [&](const UnitReport& report) { desk.Take(report); };
  sink.samples = [&](int64_t pid, std::span<const guard::wire::Sample> samples) {
    desk.Take(pid, samples);
  };
  // A machine without a free CPU is when looks matter; it does not work without
  // rights, and then it must do without.
  static_cast<void>(setpriority(PRIO_PROCESS, 0, kCollectorNice));
  const uint64_t begin_ns = GuardClockNs();
  const auto over = [&] {
    return watch.flags.for_ns != 0 && GuardClockNs() - begin_ns >= watch.flags.for_ns;
  };
  uint64_t asked_ns = begin_ns;
  const auto ended = [&] {
    const uint64_t now_ns = GuardClockNs();
    if (now_ns - asked_ns < kAskForEndNs) return false;
    asked_ns = now_ns;
    return !target.alive();
  };
  OwnCost own_cost(kGuardPlan);
  while (!ended() && GuardSignals::Stop() == 0 && !over()) {
    collector.Poll(sink);
    own_cost.Turn(collector, GuardClockNs());
    SleepMs(static_cast<int64_t>(collector.PauseNs() / 1'000'000));
  }
  collector.Finish(sink);
  desk.summary.looks_ppm = collector.spent_ppm();
  const uint64_t hits = collector.Totals().hits;  // of threads that still are
  CULPRIT_TRY(watch.session.Want(guard::wire::kRemove));
  if (target.started()) {
    target.End(GuardSignals::Stop() != 0 ? GuardSignals::Stop() : SIGTERM);
  }
  const uint64_t until_ns = GuardClockNs() + 2 * kNsPerSecond;
  while (target.alive() && !collector.AllEnded() && GuardClockNs() < until_ns) {
    collector.Poll(sink);
    SleepMs(kGuardRoundMs);
  }
  if (target.alive()) guard::ReleaseSleepers(watch.session.path());
  collector.Finish(sink);  // what threads had kept is given at the end
  desk.summary.totals = collector.Totals();
  desk.summary.totals.hits = std::max(hits, desk.summary.totals.hits);
  desk.summary.plan = watch.facts;
  desk.summary.budget_ppm = watch.flags.budget_ppm;
  desk.summary.own_cost = own_cost.share();
  desk.summary.dur_ns = GuardClockNs() - begin_ns;
  if (desk.summary.totals.processes == 0) {
    return Error{.message = "the program did not load the guards",
                 .hint = "see that it does not clear its environment (LD_PRELOAD)"};
  }
  return {};
}

using MakeTarget = std::function<Result<GuardTarget>(const guard::SessionFolder&)>;

Result<int> GuardAndWatch(const Profile& profile, const WatchFlags& flags, const MakeTarget& make,
                          Output& output) {
  const bool measured =
      std::any_of(profile.types.begin(), profile.types.end(),
                  [](const guard::UnitType& type) { return type.threshold_ns != 0; });
  if (!measured && profile.unknown_threshold_ns == 0) {
    return Error{.message = "the profile has no thresholds: its training measured no unit",
                 .hint = "culprit guard train --add PROFILE, with a load for all of --for"};
  }
  CULPRIT_ASSIGN(guard::SessionFolder session, guard::SessionFolder::Create());
  WatchSession watch = {profile, flags, session, {}, {}};
  guard::PlanOptions plan;
  plan.budget_ppm = flags.budget_ppm;
  plan.sample_every = static_cast<uint32_t>(flags.sample_every);
  watch.plan = guard::BuildPlan(profile, guard::wire::Mode::kGuard, plan, &watch.facts);
  CULPRIT_TRY(session.WritePlan(kGuardPlan, watch.plan));
  CULPRIT_TRY(session.Want(kGuardPlan));
  CULPRIT_ASSIGN(ReportDesk desk, ReportDesk::Open(flags, profile, output));
  const GuardSignals signals;
  CULPRIT_ASSIGN(GuardTarget target, make(session));
  if (target.held_ns() > 0) {
    output.Note("guards are in process " + std::to_string(target.pid()) + "; it was held for " +
                FormatDuration(static_cast<int64_t>(target.held_ns())));
  }
  const Status watched = Watch(watch, target, desk);
  CULPRIT_TRY(desk.Finish());
  CULPRIT_TRY(watched);
  if (flags.json) output.Print(GuardSummaryJson(desk.summary) + "\n");
  output.Note(GuardSummaryText(desk.summary, output));
  if (!flags.store.empty() && desk.summary.reports > 0) {
    output.Note("slow units are in " + flags.store);
  }
  return target.ExitCode().value_or(0);
}

Result<int> RunGuardRun(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const WatchFlags flags, ReadWatchFlags(arguments));
  CULPRIT_ASSIGN(const Profile profile, guard::ReadProfile(arguments.operands()[0]));
  const std::vector<std::string> command(arguments.operands().begin() + 1,
                                         arguments.operands().end());
  CULPRIT_ASSIGN(const guard::ProgramFacts program, guard::CheckProgram(command[0]));
  if (!arguments.Has("--launcher")) CULPRIT_TRY(guard::CheckBuildIds(profile, program));
  return GuardAndWatch(
      profile, flags,
      [&](const guard::SessionFolder& session) { return GuardTarget::Start(command, session); },
      output);
}

Result<int> RunGuardAttach(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const WatchFlags flags, ReadWatchFlags(arguments));
  CULPRIT_ASSIGN(const Profile profile, guard::ReadProfile(arguments.operands()[0]));
  CULPRIT_ASSIGN(const int64_t pid, ParsePid(arguments.operands()[1]));
  CULPRIT_ASSIGN(const std::string path, guard::ProgramOf(pid));
  CULPRIT_ASSIGN(const guard::ProgramFacts program, guard::CheckProgram(path));
  CULPRIT_TRY(guard::CheckBuildIds(profile, program));
  guard::InjectOptions inject;
  inject.allow_seccomp = arguments.Has("--allow-seccomp");
  return GuardAndWatch(
      profile, flags,
      [&](const guard::SessionFolder& session) {
        return GuardTarget::Attach(pid, session, inject);
      },
      output);
}

Result<int> RunGuardDetach(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const int64_t pid, ParsePid(arguments.operands()[0]));
  const std::vector<std::string> sessions = guard::SessionsOf(pid);
  if (sessions.empty()) {
    return Error{.message = "process " + std::to_string(pid) + " has no guards of yours"};
  }
  for (const std::string& session : sessions) {
    CULPRIT_ASSIGN(const guard::SharedFile control, guard::SharedFile::Open(session + "/control"));
    if (!control.Write(offsetof(guard::wire::Control, wanted), guard::wire::kRemove)) {
      return ErrnoError("write", session + "/control");
    }
    const auto gone = [&] {
      const auto process = guard::GuardedProcess::Open(session, pid);
      return !process.ok() || process.value().Counters().ended || !process.value().alive();
    };
    const uint64_t until_ns = GuardClockNs() + 2 * kNsPerSecond;
    while (!gone() && GuardClockNs() < until_ns) SleepMs(kGuardRoundMs);
    guard::ReleaseSleepers(session);
    output.Note(gone() ? "process " + std::to_string(pid) + " is without guards"
                       : "process " + std::to_string(pid) +
                             " lets go of its guards when its next unit begins");
  }
  return 0;
}

std::vector<Flag> WatchFlagTable() {
  return {{.name = "--on-violation",
           .kind = ValueKind::kText,
           .value = "COMMAND",
           .help = "run it in a shell for a slow unit, with CULPRIT_TYPE, CULPRIT_WALL_NS and "
                   "others in its environment"},
          {.name = "--pause",
           .kind = ValueKind::kDuration,
           .value = "TIME",
           .help = "between two such runs at least",
           .default_text = "10s"},
          {.name = "--flight",
           .help = "have running flight recorders (culprit record --flight) write what they "
                   "remember, with the slow unit marked"},
          {.name = "--store",
           .kind = ValueKind::kPath,
           .value = "FOLDER",
           .help = "keep reports there, a file of JSON lines a day"},
          {.name = "--units",
           .kind = ValueKind::kPath,
           .value = "TRACE",
           .help = "write units as instances of a trace, for culprit guard export"},
          {.name = "--sample-every",
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "of the units that are not slow, every so many goes into --units",
           .default_text = "100"},
          {.name = "--budget",
           .kind = ValueKind::kText,
           .value = "SHARE",
           .help = "what guards may cost of a unit's time",
           .default_text = "1%"},
          {.name = "--hang",
           .kind = ValueKind::kDuration,
           .value = "TIME",
           .help = "report a unit that still runs after this long",
           .default_text = "1s"},
          {.name = "--no-looks",
           .help = "never look at a thread from outside: no ptrace, fewer stacks; loops that spin "
                   "go unseen"},
          {.name = "--for",
           .kind = ValueKind::kDuration,
           .value = "TIME",
           .help = "end after this long"},
          {.name = "--json", .help = "print one JSON object a line; the last is the summary"}};
}

constexpr std::string_view kGuardDetails =
    "A unit that takes longer than its type's threshold is printed with its type, how long it "
    "took, and where its thread was. Time that a thread was ready but had no CPU does not count. "
    "A unit past its threshold is looked at from outside while it runs, so that the stack shows "
    "what is slow. Reports are bounded to ten a second and process. Guards that are hit too "
    "often take themselves away. What was patched is restored at the end.";

}  // namespace

Command GuardRunCommand() {
  Command command;
  command.name = "guard run";
  command.summary = "run a program with guards: report units that take too long";
  command.operands = "PROFILE -- COMMAND...";
  command.min_operands = 2;
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit guard run redis.cguard -- redis-server --port 7000", "print slow units"},
      {"culprit guard run redis.cguard --store slow --on-violation 'mail ops' -- redis-server",
       "keep them, tell somebody"},
      {"sudo culprit guard run redis.cguard --flight -- redis-server",
       "with culprit record --system --flight 60s running: a trace of every slow unit"}};
  command.flags = WatchFlagTable();
  command.flags.push_back(
      {.name = "--launcher",
       .help = "COMMAND is not the trained program itself but starts it (setpriv, a script)"});
  command.details = kGuardDetails;
  command.run = &RunGuardRun;
  return command;
}

Command GuardAttachCommand() {
  Command command;
  command.name = "guard attach";
  command.summary = "bring guards into a process that runs, take them out again at the end";
  command.operands = "PROFILE PID";
  command.min_operands = 2;
  command.max_operands = 2;
  command.examples = {
      {"sudo culprit guard attach redis.cguard 1234", "until Ctrl-C"},
      {"sudo culprit guard attach redis.cguard 1234 --for 10m --store slow", "ten minutes"}};
  command.flags = WatchFlagTable();
  command.flags.push_back(
      {.name = "--allow-seccomp", .help = "attach to a process with a seccomp filter"});
  command.details = kGuardDetails;
  command.run = &RunGuardAttach;
  return command;
}

Command GuardDetachCommand() {
  Command command;
  command.name = "guard detach";
  command.summary = "take the guards out of a process and its children";
  command.operands = "PID";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"sudo culprit guard detach 1234", "also if the culprit that put them in was killed"}};
  command.details =
      "The original code is restored by the process itself, when its next unit begins; one whose "
      "threads all sleep is made to do it after two seconds. The small library stays loaded.";
  command.run = &RunGuardDetach;
  return command;
}

}  // namespace culprit::cli
