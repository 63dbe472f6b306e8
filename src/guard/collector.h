// SPDX-License-Identifier: Apache-2.0
//
// Collector: culprit's side of a guarded session. Poll(), called again after what
// PauseNs() says, finds processes that joined (forked children too), takes what their
// rings hold, looks at units that run too long and at loops that spin, and keeps the
// session's beat. Reports
// come out with names, as soon as they have them (report_namer.h); samples as they are.
//
// Units are looked at in every round, rings and processes in some: a round costs one system
// call a process, a whole one three for a process that does something;
// what all rounds cost is kept within a share (look_pace.h). The profile and the session
// must outlive it. Slots and rings of processes that ended are removed.
// One thread at a time, always the same (ptrace).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/guarded_process.h"
#include "guard/look_pace.h"
#include "guard/process_image.h"
#include "guard/profile.h"
#include "guard/report_namer.h"
#include "guard/session_folder.h"
#include "guard/spin_watch.h"
#include "guard/unit_report.h"
#include "guard/unit_watch.h"

namespace culprit::guard {

struct CollectorOptions {
  bool watch = true;             // look at units that run too long, and at loops that spin
  uint64_t budget_ppm = 10'000;  // of the CPU time of the processes, for the rounds; 0: no bound
  uint64_t whole_round_ns = 18'000'000;  // so much is at least between two whole rounds
  bool wait_for_names = false;           // else a report may come some rounds later
  WatchOptions hang = {};
};

struct CollectorSink {
  std::function<void(const UnitReport&)> report;
  std::function<void(int64_t pid, std::span<const wire::Sample>)> samples;
};

// Of all processes, those that ended included.
struct SessionTotals {
  uint64_t processes = 0;
  uint64_t alive = 0;
  uint64_t units = 0;
  uint64_t hits = 0;
  uint64_t violations = 0;
  uint64_t suppressed = 0;  // not reported, by the bound on reports a second
  uint64_t withdrawn = 0;   // within their threshold in the end, or slow only by our looks
  uint64_t lost_records = 0;
  uint64_t lost_log_bytes = 0;
  uint64_t bad_records = 0;
  uint32_t patched = 0;  // the largest of a process
  uint32_t refused = 0;
  uint32_t removed = 0;  // guards that took themselves away
  uint32_t foreign_modules = 0;
};

class Collector {
 public:
  Collector(SessionFolder& session, const CollectorOptions& options);

  void Poll(const CollectorSink& sink);
  // After a round: until the next.
  uint64_t PauseNs() const { return pause_ns_; }
  // What the rounds cost, in ppm of what the budget is about.
  uint64_t spent_ppm() const { return pace_.spent_ppm(); }
  // The last: takes also what processes left that came and went since the round
  // before.
  void Finish(const CollectorSink& sink);
  // The profile that gives types their names and the plan made from it; none
  // before the first call (training).
  void Use(const Profile& profile, std::string_view plan);
  SessionTotals Totals() const;
  // Every process that lives has loaded this plan.
  bool AllHavePlan(uint32_t plan) const;
  // Every process that lives has let go.
  bool AllEnded() const;
  std::vector<int64_t> pids() const;
  // Whether the code there is the guards' own, as far as is known; nothing: no process of ours.
  std::optional<bool> IsOwnCode(int64_t pid, uint64_t address) const;

 private:
  struct RunningUnit {
    wire::Violation violation = {};  // kept up to date while it runs
    wire::Violation first = {};      // as it came
    ThreadLife life;                 // then
    int rounds_after_end = 0;        // in which no record of its end came
  };
  struct Member {
    std::unique_ptr<GuardedProcess> process;
    std::shared_ptr<const ProcessImage> image;  // a forked child has its parent's
    std::string name;
    std::vector<RunningUnit> running;  // told of by a guard before their end
    uint32_t idle_rounds = 0;
    uint64_t cpu_ns = 0;                                  // at the last look at its clock
    uint64_t used_cpu_ns = 0;                             // between the last two
    std::map<int64_t, std::vector<UnitLook>> spin_looks;  // by thread that may spin
  };
  void FindProcesses();
  void WholeRound(const CollectorSink& sink, uint64_t now_ns);
  void LookAtUnits(Member& member, uint64_t now_ns);
  // True: clocks were read.
  bool KeepPace();
  void LookForSpins();
  void LookForSpin(Member& member, const ThreadUnits& thread, uint64_t now_ns);
  // Reads its image again; that of one that ended stays.
  static void Renew(Member& member);
  void Forget(int64_t pid);
  void Retire(int64_t pid);
  void Take(Member& member, const wire::Violation& violation);
  void Send(const std::vector<UnitReport>& reports, const CollectorSink& sink);
  static wire::Violation WithStack(Member& member, const wire::Violation& end);
  void SettleRunning(Member& member, uint64_t now_ns);
  // False: it ended.
  bool PollMember(Member& member, const CollectorSink& sink, uint64_t now_ns);
  void TakeRing(Member& member, const CollectorSink& sink, uint64_t now_ns);
  // With what every report has: who, when, how long.
  static UnitReport NewReport(const Member& member, int64_t tid, uint64_t begin_ns,
                              uint64_t wall_ns);
  UnnamedReport MakeReport(Member& member, const wire::Violation& violation);
  UnnamedReport MakeReport(Member& member, const HungUnit& hung);
  UnnamedReport MakeReport(Member& member, const Spin& spin);
  void FillTrickle(const wire::Violation& violation, UnitReport& report) const;
  bool IsTold(const UnitReport& report) const;
  void FillType(uint32_t type, uint32_t loop, UnitReport& report) const;
  // What an unknown unit is most like.
  void FillNearest(const OpenUnit& unit, UnitReport& report) const;
  static void AddStack(Member& member, UnnamedStack stack, UnnamedReport& report);
  static void AddLooks(Member& member, const std::vector<UnitLook>& looks, UnnamedReport& report);

  SessionFolder& session_;
  const Profile* profile_ = nullptr;
  std::vector<wire::PlanType> types_;
  uint32_t min_similarity_ppm_ = 0;
  CollectorOptions options_;
  UnitWatch watch_;
  SpinWatch spins_;
  std::vector<uint64_t> usual_ns_;     // by loop: half of its time goes into longer units
  std::map<int64_t, Member> members_;  // those that live
  SessionTotals past_;                 // of those that ended
  uint64_t whole_round_ns_ = 0;
  uint64_t beat_ns_ = 0;
  LookPace pace_;
  uint64_t pause_ns_ = LookPace::kUsualNs;
  uint64_t clocks_read_ns_ = 0;
  double program_cpus_ = 0;  // between the last two readings
  ReportNamer namer_;
  uint64_t other_cpu_ns_ = 0;  // for processes that come and go, and for handing reports on
  bool unready_ = true;  // a process is not known yet: its files are not made, or nobody looked
};

}  // namespace culprit::guard
