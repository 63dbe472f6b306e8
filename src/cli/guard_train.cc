// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <filesystem>
#include <functional>

#include "base/text.h"
#include "cli/guard_commands.h"
#include "cli/guard_target.h"
#include "cli/guard_text.h"
#include "cli/live_flags.h"
#include "guard/collector.h"
#include "guard/cpu_meter.h"
#include "guard/learn.h"
#include "guard/merge_profiles.h"
#include "guard/plan_builder.h"
#include "guard/profile_file.h"
#include "guard/program_check.h"
#include "guard/thresholds.h"

namespace culprit::cli {
namespace {

using guard::Collector;
using guard::GuardClockNs;
using guard::Profile;
using guard::SessionFolder;

constexpr uint32_t kTrainPlan = 1;
constexpr uint32_t kOffPlan = 2;
constexpr uint32_t kCalibratePlan = 3;
constexpr int64_t kTrainRoundMs = 10;
constexpr uint64_t kCpuRounds = 50;  // between two looks at the CPU time

struct TrainOptions {
  std::vector<std::string> command;
  int64_t attach_pid = 0;  // 0: the command
  std::string path;
  std::string add;  // an older profile; empty: none
  Overwrite overwrite = Overwrite::kRefuse;
  uint64_t for_ns = 0;
  uint64_t trace_ns = 0;
  uint64_t log_bytes = 0;
  uint64_t budget_ppm = 10'000;
  bool keep_running = false;
  guard::ProgramFacts program;  // of the command
  guard::LearnOptions learn;
  guard::ThresholdOptions thresholds;
  guard::InjectOptions inject;
};

Result<TrainOptions> ReadTrainOptions(const Arguments& arguments) {
  TrainOptions options;
  options.command = arguments.operands();
  if (arguments.Has("--attach")) {
    CULPRIT_ASSIGN(options.attach_pid, ParsePid(arguments.Text("--attach")));
  }
  if (options.command.empty() == (options.attach_pid == 0)) {
    return Error{.message = "say what to train: a command or --attach PID",
                 .hint = "culprit guard train -- COMMAND..."};
  }
  options.add = arguments.Text("--add");
  options.path = arguments.Text("--output");
  options.for_ns = static_cast<uint64_t>(arguments.DurationNs("--for"));
  options.trace_ns = static_cast<uint64_t>(arguments.DurationNs("--trace-for"));
  options.log_bytes = arguments.Number("--log-mb") << 20;
  CULPRIT_ASSIGN(options.budget_ppm, ReadBudgetPpm(arguments));
  options.keep_running = arguments.Has("--keep-running");
  options.inject.allow_seccomp = arguments.Has("--allow-seccomp");
  options.learn.sub_units = !arguments.Has("--no-sub-units");
  if (arguments.Text("--distance") == "paper") {
    options.learn.types.distance = guard::UnitDistance::kAlgorithm1;
  }
  if (arguments.Text("--threshold") == "paper") {
    options.thresholds.rule = guard::ThresholdRule::kMeanAndSigma;
  }
  options.thresholds.floor_ns = static_cast<uint64_t>(arguments.DurationNs("--floor"));
  if (options.path.empty()) {
    options.path = options.add;
    if (options.path.empty() && !options.command.empty()) {
      options.path = std::string(BaseName(options.command[0])) + ".cguard";
    }
    if (options.path.empty()) options.path = "trained.cguard";
  }
  const bool again = arguments.Has("--force") || options.path == options.add;
  options.overwrite = again ? Overwrite::kAllow : Overwrite::kRefuse;
  std::error_code code;
  if (!again && std::filesystem::exists(options.path, code)) {
    return Error{.message = "exists already",
                 .file = options.path,
                 .hint = "--force overwrites it, --add " + options.path + " learns more into it"};
  }
  return options;
}

// The session of one training, step by step.
class Training {
 public:
  Training(const TrainOptions& options, Output& output, SessionFolder& session)
      : options_(options), output_(output), session_(session), collector_(session, Watching()) {}

  Status Begin() {
    guard::TrainPlanOptions plan;
    plan.log_bytes = options_.log_bytes;
    CULPRIT_TRY(session_.WritePlan(kTrainPlan, guard::TrainPlan(plan)));
    CULPRIT_TRY(session_.Want(kTrainPlan));
    auto target = options_.attach_pid == 0
                      ? GuardTarget::Start(options_.command, session_)
                      : GuardTarget::Attach(options_.attach_pid, session_, options_.inject);
    if (!target.ok()) return target.error();
    target_.emplace(std::move(target).value());
    begin_ns_ = GuardClockNs();
    return {};
  }

  // Every function writes its entry, until there is enough of it.
  Status Trace() {
    output_.progress().Start("tracing every function", "bytes of log", 0);
    uint64_t told = 0;
    while (Goes(options_.trace_ns)) {
      collector_.Poll({});
      SleepMs(kTrainRoundMs);
      const uint64_t bytes = session_.LogBytes();
      output_.progress().Advance(bytes > told ? bytes - told : 0);
      told = std::max(told, bytes);
      if (told >= options_.log_bytes) break;
    }
    output_.progress().Finish();
    if (GuardSignals::Stop() == 0 && !target_->alive()) ended_ns_ = GuardClockNs();
    collector_.Finish({});
    const guard::SessionTotals totals = collector_.Totals();
    if (totals.processes == 0) {
      return NothingLearned(
          {.message = "the program ended before the guards came up, or did not load them",
           .hint = "see that it is dynamically linked and does not clear its environment"});
    }
    if (totals.patched == 0 && totals.units == 0 && session_.LogBytes() == 0) {
      return Error{.message = "no function of the program could be patched",
                   .hint =
                       "the system may forbid to change code (SELinux, "
                       "MemoryDenyWriteExecute): train it without that"};
    }
    if (totals.lost_log_bytes > 0) {
      output_.Warn(FormatBytes(totals.lost_log_bytes) + " of the log were lost for want of room");
    }
    return {};
  }

  // From the log to types and guards; the program runs on without tracing.
  Status LearnFromLog() {
    const uint64_t learning_since_ns = GuardClockNs();
    CULPRIT_TRY(session_.WritePlan(kOffPlan, guard::BuildPlan(Profile{}, guard::wire::Mode::kOff)));
    CULPRIT_TRY(session_.Want(kOffPlan));
    const uint64_t until_ns = GuardClockNs() + 2 * kNsPerSecond;
    while (target_->alive() && !collector_.AllHavePlan(kOffPlan) && GuardClockNs() < until_ns) {
      collector_.Poll({});
      SleepMs(kTrainRoundMs);
    }
    Diagnostics diagnostics;
    auto learned = guard::Learn(session_.path(), options_.learn, output_.progress(), diagnostics);
    if (!learned.ok()) return NothingLearned(learned.error());
    profile_ = std::move(learned).value();
    for (const auto& [what, row] : diagnostics.rows()) {
      output_.Warn(what + ": " + FormatCount(row.count));
    }
    // Several programs may be links to one file.
    if (profile_.program == options_.program.path) profile_.program = options_.program.name;
    if (!options_.add.empty()) {
      CULPRIT_ASSIGN(const Profile old, guard::ReadProfile(options_.add));
      CULPRIT_ASSIGN(profile_,
                     guard::MergeProfiles(old, profile_, options_.learn, options_.thresholds));
    }
    output_.Note("found " + FormatCount(profile_.loops.size()) + " event loops, " +
                 FormatCount(profile_.types.size()) + " types of units in " +
                 FormatCount(profile_.training.units) + " units");
    // A large log takes minutes to learn from: that must not be taken off what is measured.
    begin_ns_ += GuardClockNs() - learning_since_ns;
    return {};
  }

  // With the chosen guards only, every unit's time is a sample.
  Status Calibrate() {
    const std::string plan = guard::BuildPlan(profile_, guard::wire::Mode::kCalibrate,
                                              {.budget_ppm = options_.budget_ppm});
    CULPRIT_TRY(session_.WritePlan(kCalibratePlan, plan));
    CULPRIT_TRY(session_.Want(kCalibratePlan));
    collector_.Use(profile_, plan);
    output_.progress().Start("measuring", "units", 0);
    sink_.samples = [&](int64_t /*pid*/, std::span<const guard::wire::Sample> samples) {
      for (const guard::wire::Sample& sample : samples) guard::AddSample(sample, profile_);
      samples_ += samples.size();
    };
    guard::CpuMeter meter;
    const uint64_t units_before = collector_.Totals().units;
    uint64_t round = 0;
    while (Goes(options_.for_ns)) {
      const uint64_t before = samples_;
      collector_.Poll(sink_);
      output_.progress().Advance(samples_ - before);
      if (round++ % kCpuRounds == 0) meter.Look(collector_.pids());
      SleepMs(kTrainRoundMs);
    }
    meter.Look(collector_.pids());
    profile_.training.measured_units += collector_.Totals().units - units_before;
    profile_.training.measured_cpu_ns += meter.cpu_ns();
    output_.progress().Finish();
    return {};
  }

  void End() {
    static_cast<void>(session_.Want(guard::wire::kRemove).ok());
    if (target_ && target_->started() && !options_.keep_running) target_->End(SIGTERM);
    // Whoever goes on must have let go before the folder goes.
    const uint64_t until_ns = GuardClockNs() + 2 * kNsPerSecond;
    while (target_ && target_->alive() && !collector_.AllEnded() && GuardClockNs() < until_ns) {
      collector_.Poll(sink_);
      SleepMs(kTrainRoundMs);
    }
    if (target_ && target_->alive()) guard::ReleaseSleepers(session_.path());
    collector_.Finish(sink_);  // what threads had kept is given at the end
  }

  Profile& profile() { return profile_; }
  const Profile& profile() const { return profile_; }
  guard::SessionTotals Totals() const { return collector_.Totals(); }
  uint64_t samples() const { return samples_; }

 private:
  static guard::CollectorOptions Watching() {
    guard::CollectorOptions options;
    options.watch = false;
    return options;
  }
  // Until so long after the beginning, a signal, or the program's end.
  bool Goes(uint64_t for_ns) {
    if (GuardSignals::Stop() != 0 || !target_->alive()) return false;
    return for_ns == 0 || GuardClockNs() - begin_ns_ < for_ns;
  }

  // A program that cannot start (a port in use, a bad option) leaves a log, too.
  Error NothingLearned(Error error) {
    error.file = options_.attach_pid == 0 ? options_.command[0]
                                          : "process " + std::to_string(options_.attach_pid);
    if (ended_ns_ == 0) return error;
    error.message +=
        "; the program ended after " + FormatDuration(static_cast<int64_t>(ended_ns_ - begin_ns_));
    if (const std::optional<int> code = target_->ExitCode()) {
      error.message += " with exit code " + std::to_string(*code);
    }
    error.hint = "see what the program said, or make it run longer under a typical load";
    return error;
  }

  const TrainOptions& options_;
  Output& output_;
  SessionFolder& session_;
  Collector collector_;
  std::optional<GuardTarget> target_;
  guard::CollectorSink sink_;
  uint64_t begin_ns_ = 0;
  uint64_t ended_ns_ = 0;  // the program, by itself, while it was traced; 0: it did not
  uint64_t samples_ = 0;
  Profile profile_;
};

// Types whose units did not come by while times were measured have no threshold but the floor.
void WarnOfMeasuring(const Training& training, const std::string& path, Output& output) {
  constexpr uint64_t kTypical = 100;  // units of a type that should have come again
  const std::string longer = "run the load until the end, or longer with --add " + path;
  if (training.samples() == 0) {
    return output.Warn("no unit was measured, so there are no thresholds yet: " + longer);
  }
  const guard::SessionTotals totals = training.Totals();
  if (totals.refused > 0) {
    output.Warn(FormatCount(totals.refused) + " of " +
                FormatCount(totals.patched + totals.refused) +
                " guarded functions could not be patched: what they tell apart was not measured");
  }
  if (totals.lost_records > 0) {
    output.Warn(FormatCount(totals.lost_records) +
                " measured units were lost: culprit had too "
                "little CPU time beside the load");
  }
  uint64_t typical = 0;
  uint64_t unseen = 0;
  for (const guard::UnitType& type : training.profile().types) {
    if (type.units < kTypical) continue;
    ++typical;
    if (type.stats.count() == 0) ++unseen;
  }
  if (unseen > 0) {
    output.Warn(
        FormatCount(unseen) + " of " + FormatCount(typical) +
        " frequent types were not seen while measuring, so they have the least threshold: " +
        longer);
  }
}

Status Train(Training& training) {
  CULPRIT_TRY(training.Begin());
  CULPRIT_TRY(training.Trace());
  CULPRIT_TRY(training.LearnFromLog());
  return training.Calibrate();
}

Result<int> RunGuardTrain(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(TrainOptions options, ReadTrainOptions(arguments));
  if (options.attach_pid == 0) {
    CULPRIT_ASSIGN(options.program, guard::CheckProgram(options.command[0]));
  }
  if (!options.add.empty()) CULPRIT_TRY(guard::ReadProfile(options.add));
  guard::SessionOptions session_options;
  session_options.needed_bytes += options.log_bytes;
  CULPRIT_ASSIGN(SessionFolder session, SessionFolder::Create(session_options));
  const GuardSignals signals;
  Training training(options, output, session);
  const Status status = Train(training);
  training.End();
  CULPRIT_TRY(status);
  guard::SetThresholds(training.profile(), options.thresholds);
  CULPRIT_TRY(guard::WriteProfile(training.profile(), options.path, options.overwrite));
  const ProfileView view = {.top = 10, .budget_ppm = options.budget_ppm};
  output.Print(GuardProfileText(training.profile(), options.path, view, output));
  WarnOfMeasuring(training, options.path, output);
  // What a launcher (env, taskset, a script) became is what is guarded.
  const std::string& program = training.profile().program;
  const bool direct = !options.command.empty() && program == options.program.name;
  output.Note("next: culprit guard run " + options.path + " -- " +
              (direct ? options.command[0] : program) + " ...");
  return 0;
}

}  // namespace

Command GuardTrainCommand() {
  Command command;
  command.name = "guard train";
  command.summary = "learn a program's kinds of work and how long each may take";
  command.operands = "[-- COMMAND...]";
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit guard train --for 60s -o redis.cguard -- redis-server --port 7000",
       "while a typical load runs against it"},
      {"culprit guard train --add redis.cguard -- redis-server --port 7000",
       "another kind of load, into the same profile"},
      {"sudo culprit guard train --attach 1234 -o app.cguard", "a process that runs already"}};
  command.flags = {
      {.name = "--output",
       .letter = 'o',
       .kind = ValueKind::kPath,
       .value = "FILE",
       .help = "the profile to write; by default the program's name with .cguard"},
      {.name = "--force", .help = "overwrite it"},
      {.name = "--add",
       .kind = ValueKind::kPath,
       .value = "PROFILE",
       .help = "learn more into what this profile knows"},
      {.name = "--attach",
       .kind = ValueKind::kText,
       .value = "PID",
       .help = "train a process that runs already"},
      {.name = "--for",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "how long in all, without what learning from the trace takes; 0s: until the "
               "program ends or Ctrl-C",
       .default_text = "30s"},
      {.name = "--trace-for",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "of it with every function traced, which slows the program down",
       .default_text = "5s"},
      {.name = "--log-mb",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "stop tracing at so many megabytes of log",
       .default_text = "1024"},
      {.name = "--budget",
       .kind = ValueKind::kText,
       .value = "SHARE",
       .help = "what guards may cost of a unit's time",
       .default_text = "1%"},
      {.name = "--floor",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "no threshold is below this",
       .default_text = "1ms"},
      {.name = "--threshold",
       .kind = ValueKind::kChoice,
       .value = "RULE",
       .help = "by the tail of the times seen, or mean + 4 sigma as the paper has it",
       .default_text = "tail",
       .choices = {"tail", "paper"}},
      {.name = "--distance",
       .kind = ValueKind::kChoice,
       .value = "RULE",
       .help = "how alike units are: by shared call paths, or the paper's Algorithm 1",
       .default_text = "jaccard",
       .choices = {"jaccard", "paper"}},
      {.name = "--no-sub-units", .help = "take whole iterations of loops as units"},
      {.name = "--keep-running", .help = "leave the program running afterwards, without guards"},
      {.name = "--allow-seccomp", .help = "attach to a process with a seccomp filter"}};
  command.details =
      "Needs no source, no symbols and no change of the program. First every function writes its "
      "entry for a few seconds: from that log come the event loops, the kinds of units and the "
      "few functions that tell them apart. Then only these are watched, and how long units take "
      "is measured. Run the load that the program will see: what training does not see is an "
      "unknown type later. A started program gets SIGTERM at the end.";
  command.run = &RunGuardTrain;
  return command;
}

}  // namespace culprit::cli
