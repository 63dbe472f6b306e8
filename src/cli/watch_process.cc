// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_process.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "cli/guard_target.h"
#include "cli/guard_text.h"
#include "cli/watch_costs.h"
#include "cli/watch_recorder.h"
#include "guard/collector.h"
#include "guard/guarded_process.h"
#include "guard/injector.h"
#include "guard/plan_builder.h"
#include "guard/proc_file.h"
#include "guard/profile_file.h"
#include "guard/program_check.h"
#include "guard/violation_store.h"
#include "watch/analyst.h"
#include "watch/dump_policy.h"
#include "watch/intake.h"
#include "watch/process_family.h"

namespace culprit::cli {
namespace {

using guard::GuardClockNs;
using guard::UnitReport;

constexpr uint32_t kWatchPlan = 1;
constexpr int64_t kWatchRoundMs = 10;
constexpr size_t kMostPassed = 100'000;
constexpr size_t kMostSlow = 100;
constexpr std::chrono::seconds kLongestDetach{30};
constexpr uint32_t kMostDoublings = 3;
constexpr uint64_t kLetGoNs = 2'000'000'000;
constexpr uint64_t kTakeInNs = 30'000'000'000;

bool HasThresholds(const guard::Profile& profile) {
  return profile.unknown_threshold_ns != 0 ||
         std::any_of(profile.types.begin(), profile.types.end(),
                     [](const guard::UnitType& type) { return type.threshold_ns != 0; });
}

Result<guard::Profile> Learn(const Watched& watched, int64_t pid, const std::string& path,
                             uint64_t train_ns) {
  const WatchSettings& settings = watched.settings;
  watched.output.Note("learning the program's units for " +
                      FormatDuration(static_cast<int64_t>(train_ns)) +
                      ": it should do its usual work meanwhile");
  // A watch that is killed meanwhile must not leave every function traced.
  const std::string log = watched.folder.path() + "/training.log";
  std::error_code code;
  std::filesystem::remove(log, code);
  CULPRIT_ASSIGN(RunningProgram training,
                 RunningProgram::Start({"setpriv", "--pdeathsig", "TERM", settings.culprit, "guard",
                                        "train", "--attach", std::to_string(pid), "--for",
                                        std::to_string(train_ns / 1'000'000) + "ms",
                                        "--keep-running", "--force", "-o", path + ".new"},
                                       log));
  bool over = false;
  while (!training.Poll()) {
    if (watched.Over() && !std::exchange(over, true)) training.Terminate();
    SleepMs(kWatchRoundMs);
  }
  if (over) return Error{.message = "ended while it was learning"};
  if (*training.Poll() != 0) {
    const auto said = ReadWholeFile(log);
    return Error{.message = "learning failed: " + (said.ok() ? said.value().substr(0, 400) : ""),
                 .hint = "is there work for the program to do? --train-for gives more time"};
  }
  CULPRIT_ASSIGN(guard::Profile profile, guard::ReadProfile(path + ".new"));
  if (!HasThresholds(profile)) {
    std::filesystem::remove(path + ".new", code);
    return Error{.message = "there was no work to learn from",
                 .hint = "learning begins again, for longer"};
  }
  std::filesystem::rename(path + ".new", path, code);
  if (code) return Error{.message = "cannot be kept: " + code.message(), .file = path};
  return profile;
}

// The profile of the program, learnt first if it is not known yet.
Result<guard::Profile> ProfileFor(const Watched& watched, int64_t pid, uint32_t attempt) {
  CULPRIT_ASSIGN(const guard::ProgramFacts program,
                 guard::CheckProgram(guard::ProcLink(pid, "exe")));
  const std::string path =
      watched.folder.ProfileOf(program.build_id.empty() ? "no-build-id" : program.build_id);
  std::error_code code;
  if (!watched.settings.retrain && std::filesystem::exists(path, code)) {
    auto profile = guard::ReadProfile(path);
    // Libraries change too: then what was learnt is of no use.
    if (profile.ok() && guard::CheckBuildIds(profile.value(), program).ok()) return profile;
    watched.output.Note("the program changed since it was learnt: learning it again");
  }
  return Learn(watched, pid, path, watched.settings.train_ns << std::min(attempt, kMostDoublings));
}

// What happens to slow units: printed, stored, and some become traces.
class WatchDesk {
 public:
  WatchDesk(guard::ViolationStore store, watch::Intake* intake, uint64_t window_ns, Output& output)
      : store_(std::move(store)), intake_(intake), window_ns_(window_ns), output_(output) {}

  void Take(const UnitReport& report) {
    // Not as output, which may wait in a buffer: it is news.
    std::string text = GuardReportText(report, false);
    while (text.ends_with('\n')) text.pop_back();
    output_.Note(text);
    const Status stored = store_.Append(report);
    if (!stored.ok() && !warned_) output_.Warn(stored.error().ToString());
    warned_ = warned_ || !stored.ok();
    if (report.state == UnitReport::State::kHungEnded) return;
    ++reports;
    if (intake_ == nullptr) return;
    ForgetOlderThan(GuardClockNs());
    const uint64_t excess = report.counted_ns() / std::max<uint64_t>(report.threshold_ns, 1);
    if (policy_.Wants(report.type_name, GuardClockNs(), excess)) {
      ++(intake_->Take({report, {slow_.begin(), slow_.end()}, {passed_.begin(), passed_.end()}})
             ? taken
             : not_taken);
    }
    // It is an instance of the next trace too, if that reaches back so far.
    if (report.state != UnitReport::State::kHangs) slow_.push_back(report);
  }

  void Take(int64_t pid, std::span<const guard::wire::Sample> samples) {
    for (const guard::wire::Sample& sample : samples) passed_.push_back({pid, sample});
    ForgetOlderThan(GuardClockNs());
  }

  uint64_t reports = 0;
  uint64_t taken = 0;
  uint64_t not_taken = 0;  // for want of room in the queue

 private:
  void ForgetOlderThan(uint64_t now_ns) {
    const uint64_t oldest_ns = now_ns > window_ns_ ? now_ns - window_ns_ : 0;
    while (!passed_.empty() &&
           (passed_.size() > kMostPassed || passed_.front().sample.begin_ns < oldest_ns)) {
      passed_.pop_front();
    }
    while (!slow_.empty() && (slow_.size() > kMostSlow || slow_.front().begin_ns < oldest_ns)) {
      slow_.pop_front();
    }
  }

  guard::ViolationStore store_;
  watch::Intake* intake_;
  const uint64_t window_ns_;
  Output& output_;
  watch::DumpPolicy policy_;
  std::deque<watch::PassedUnit> passed_;
  std::deque<UnitReport> slow_;
  bool warned_ = false;
};

// The guards of a session, from their coming to their going.
class WatchSession {
 public:
  WatchSession(const Watched& watched, const guard::Profile& profile, guard::SessionFolder session)
      : watched_(watched), profile_(profile), session_(std::move(session)) {}

  Status Begin(int64_t pid) {
    guard::PlanOptions options;
    options.budget_ppm = watched_.settings.guard_ppm;
    options.sample_every = static_cast<uint32_t>(watched_.settings.sample_every);
    plan_ = guard::BuildPlan(profile_, guard::wire::Mode::kGuard, options, &facts);
    CULPRIT_TRY(session_.WritePlan(kWatchPlan, plan_));
    CULPRIT_TRY(session_.Want(kWatchPlan));
    CULPRIT_TRY(GuardTarget::Attach(pid, session_, {}));
    collector_.emplace(session_, guard::CollectorOptions{.budget_ppm = watched_.settings.look_ppm});
    collector_->Use(profile_, plan_);
    return {};
  }

  void Poll(const guard::CollectorSink& sink) { collector_->Poll(sink); }
  void Pause() const { SleepMs(static_cast<int64_t>(collector_->PauseNs() / 1'000'000)); }
  uint64_t looks_ppm() const { return collector_->spent_ppm(); }

  // Every process puts its code back at its next wait.
  void End(int64_t pid, const guard::CollectorSink& sink) {
    collector_->Poll(sink);
    const uint64_t until_ns = GuardClockNs() + kLetGoNs;
    if (!session_.Want(guard::wire::kRemove).ok()) return;
    while (watched_.Alive(pid) && !collector_->AllEnded() && GuardClockNs() < until_ns) {
      collector_->Poll(sink);
      SleepMs(kWatchRoundMs);
    }
    if (watched_.Alive(pid) && !collector_->AllEnded()) WakeSleepers();
  }

  guard::SessionTotals Totals() const { return collector_->Totals(); }
  guard::PlanFacts facts;

 private:
  // Who waits for ever (a master process in sigsuspend) never comes to its next
  // wait: a start within it finds that its session is over, and puts its code back.
  void WakeSleepers() {
    const Result<std::string> runtime = guard::FindRuntime();
    if (!runtime.ok()) return;
    for (const int64_t member : collector_->pids()) {
      const auto process = guard::GuardedProcess::Open(session_.path(), member);
      if (!process.ok() || process.value().Counters().ended || !process.value().alive()) continue;
      static_cast<void>(guard::InjectRuntime(member, runtime.value(), session_.path()).ok());
    }
  }

  const Watched& watched_;
  const guard::Profile& profile_;
  guard::SessionFolder session_;
  std::string plan_;
  std::optional<guard::Collector> collector_;
};

// A killed watch left guards that nobody listens to.
void TakeOutLeftGuards(const Watched& watched, int64_t pid) {
  for (const int64_t member : watch::ProcessFamily(pid)) {
    if (!watch::HasForsakenGuards(member)) continue;
    watched.output.Note("process " + std::to_string(member) +
                        " has guards of a watch that was killed: taking them out");
    const auto done = RunProgram(
        {watched.settings.culprit, "guard", "detach", std::to_string(member)}, kLongestDetach);
    if (!done.ok()) watched.output.Warn(done.error().ToString());
  }
}

}  // namespace

bool Watched::Over() const {
  return GuardSignals::Stop() != 0 ||
         (settings.for_ns != 0 && GuardClockNs() - begin_ns >= settings.for_ns);
}

bool Watched::Alive(int64_t pid) const {
  if (child != nullptr) return !child->ExitCode().has_value();
  return guard::IsRunning(pid);
}

Status WatchProcess(const Watched& watched, int64_t pid, uint32_t attempt) {
  const WatchSettings& settings = watched.settings;
  TakeOutLeftGuards(watched, pid);
  CULPRIT_ASSIGN(const guard::Profile profile, ProfileFor(watched, pid, attempt));
  if (watched.Over() || !watched.Alive(pid)) return {};
  CULPRIT_ASSIGN(guard::ViolationStore store,
                 guard::ViolationStore::Open(watched.folder.Reports()));
  CULPRIT_ASSIGN(guard::SessionFolder folder, guard::SessionFolder::Create());
  WatchSession session(watched, profile, std::move(folder));
  CULPRIT_TRY(session.Begin(pid));
  std::optional<WatchRecorder> recorder;
  std::optional<watch::Intake> intake;
  if (settings.record) {
    recorder.emplace(settings, settings.RecordPpm(session.facts.cost_ppm), watched.folder, pid);
    intake.emplace(watched.folder, profile,
                   watch::IntakeOptions{.max_corpus_bytes = settings.max_bytes},
                   [&recorder] { return recorder->Dump(); });
  }
  WatchDesk desk(std::move(store), intake ? &*intake : nullptr, settings.flight_ns, watched.output);
  watch::Analyst analyst(watched.folder, settings.culprit);
  guard::CollectorSink sink;
  sink.report = [&](const UnitReport& report) { desk.Take(report); };
  sink.samples = [&](int64_t of, std::span<const guard::wire::Sample> samples) {
    desk.Take(of, samples);
  };
  watched.output.Note("watching process " + std::to_string(pid) + ": " +
                      FormatCount(session.facts.guards.numbers.size()) +
                      " guards, expected to cost " +
                      FormatShare(static_cast<int64_t>(session.facts.cost_ppm), 1'000'000) +
                      "; inbox: " + watched.folder.InboxFile());
  WatchCosts costs(settings, session.facts.cost_ppm, recorder ? &*recorder : nullptr,
                   GuardClockNs());
  const guard::ProcessLife life(pid);
  const auto alive = [&] { return watched.child != nullptr ? watched.Alive(pid) : life.alive(); };
  while (alive() && !watched.Over()) {
    session.Poll(sink);
    if (intake) analyst.Poll(intake->counts().taken, GuardClockNs());
    const std::string told = recorder ? recorder->Poll(GuardClockNs()) : std::string();
    if (!told.empty()) watched.output.Warn(told);
    const std::string cost = costs.Poll(GuardClockNs(), session.looks_ppm());
    if (!cost.empty()) watched.output.Note(cost);
    session.Pause();
  }
  session.End(pid, sink);
  // The queue is worked off while the recorder still runs.
  const uint64_t patience_ns = GuardClockNs() + kTakeInNs;
  while (intake && intake->counts().done < desk.taken && GuardClockNs() < patience_ns) {
    SleepMs(kWatchRoundMs);
  }
  watched.output.Note(costs.Last(session.looks_ppm()));
  const watch::Intake::Counts counts = intake ? intake->counts() : watch::Intake::Counts{};
  intake.reset();
  recorder.reset();
  analyst.Finish(counts.taken);
  watched.output.Note(FormatCount(session.Totals().units) + " units, " + FormatCount(desk.reports) +
                      " slow; " + FormatCount(counts.taken) + " traces taken in, " +
                      FormatCount(counts.evicted) + " evicted, " + FormatCount(counts.failed) +
                      " failed" +
                      (counts.last_error.empty() ? "" : " (" + counts.last_error + ")"));
  return {};
}

}  // namespace culprit::cli
