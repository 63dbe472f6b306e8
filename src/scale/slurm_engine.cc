// SPDX-License-Identifier: Apache-2.0
#include "scale/slurm_engine.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "scale/index_ranges.h"
#include "scale/task_ledger.h"

namespace culprit::scale {
namespace {

using Clock = std::chrono::steady_clock;

// One stage on its way through the cluster.
class SlurmStage {
 public:
  SlurmStage(SlurmQueue queue, TaskLedger& ledger, const EngineControl& control,
             const SlurmTiming& timing, bool& known_to_answer)
      : queue_(std::move(queue)),
        ledger_(ledger),
        control_(control),
        timing_(timing),
        known_to_answer_(known_to_answer) {}

  // False if it was stopped.
  Result<bool> Run();

 private:
  Status Begin();
  Status Ask();
  Status SubmitWaiting();
  void Judge(const std::vector<SlurmTask>& tasks);
  void JudgeMissing(uint64_t index, const SlurmTask* last);
  void DropHeld(const SlurmTask& task);
  void CountFailure(uint64_t index, uint64_t job, const std::string& why, bool may_repeat);
  void TellFailures();
  Status Away(const Error& error);
  void Back();
  void NotePending(const std::vector<SlurmTask>& tasks);
  void CancelAll();
  void Tidy();
  void Note(const std::string& line) const {
    if (control_.note) control_.note(line);
  }

  SlurmQueue queue_;
  TaskLedger& ledger_;
  const EngineControl& control_;
  const SlurmTiming& timing_;
  bool& known_to_answer_;
  bool begun_ = false;
  std::set<uint64_t> to_submit_;
  std::set<std::pair<uint64_t, uint64_t>> judged_;  // job and index of attempts that are over
  std::map<uint64_t, Clock::time_point> missing_since_;
  std::map<uint64_t, std::set<std::string>> failed_on_;  // hosts
  std::map<std::string, std::set<uint64_t>> failures_to_tell_;
  std::optional<Clock::time_point> away_since_;
  std::string pending_reason_;
};

Result<bool> SlurmStage::Run() {
  Clock::time_point next_ask = Clock::now();
  while (true) {
    ledger_.SettleAll();
    if (ledger_.open().empty()) break;
    if (control_.stop && control_.stop()) {
      CancelAll();
      return false;
    }
    if (Clock::now() >= next_ask) {
      CULPRIT_TRY(begun_ ? Ask() : Begin());
      next_ask = Clock::now() + timing_.ask;
    }
    // Thousands of open tasks are thousands of questions to a file server.
    std::this_thread::sleep_for(timing_.look + std::chrono::milliseconds(ledger_.open().size()));
  }
  Tidy();
  return true;
}

// All outputs are there, so jobs are about to end. One that does not is a second run
// that nobody needs, or on a host that is cut off and would be put back into the
// queue when that is noticed.
void SlurmStage::Tidy() {
  constexpr int kLooks = 6;
  for (int i = 0; i < kLooks; ++i) {
    const Result<std::vector<SlurmTask>> tasks = queue_.Tasks();
    if (!tasks.ok()) return;
    const bool any = std::any_of(
        tasks.value().begin(), tasks.value().end(),
        [](const SlurmTask& task) { return task.active() && task.state != "COMPLETING"; });
    if (!any) return;
    std::this_thread::sleep_for(timing_.look);
  }
  static_cast<void>(queue_.CancelAll());
}

// Jobs of an earlier culprit are taken over if they still run; what else the
// controller remembers of them is over and done with.
Status SlurmStage::Begin() {
  const Result<std::vector<SlurmTask>> tasks = queue_.Tasks();
  if (!tasks.ok()) return known_to_answer_ ? Away(tasks.error()) : tasks.error();
  Back();
  begun_ = true;
  known_to_answer_ = true;
  to_submit_ = ledger_.open();
  std::set<uint64_t> adopted;
  for (const SlurmTask& task : tasks.value()) {
    // One that was just cancelled is still completing.
    if (!task.active() || task.held() || task.state == "COMPLETING") {
      judged_.emplace(task.job, task.index);
      if (task.held()) DropHeld(task);
    } else if (to_submit_.erase(task.index) == 1) {
      adopted.insert(task.index);
    }
  }
  if (!adopted.empty()) {
    Note("an earlier run left tasks in the queue: " + IndexRanges(adopted) + "; waiting for them");
  }
  TellFailures();
  return SubmitWaiting();
}

Status SlurmStage::SubmitWaiting() {
  std::map<std::set<std::string>, std::set<uint64_t>> by_hosts;
  for (const uint64_t index : to_submit_) by_hosts[failed_on_[index]].insert(index);
  for (auto& [avoid, indexes] : by_hosts) {
    const std::set<uint64_t> wanted = indexes;
    const Status submitted = queue_.Submit(indexes, avoid);
    for (const uint64_t index : wanted) {
      if (indexes.count(index) == 0) to_submit_.erase(index);
    }
    if (submitted.ok()) continue;
    if (SlurmQueue::MayPass(submitted.error())) return Away(submitted.error());
    CancelAll();
    return submitted.error();
  }
  return {};
}

Status SlurmStage::Ask() {
  const Result<std::vector<SlurmTask>> tasks = queue_.Tasks();
  if (!tasks.ok()) return Away(tasks.error());
  Back();
  Judge(tasks.value());
  TellFailures();
  NotePending(tasks.value());
  return SubmitWaiting();
}

void SlurmStage::Judge(const std::vector<SlurmTask>& tasks) {
  std::set<uint64_t> active;
  std::map<uint64_t, const SlurmTask*> over;
  for (const SlurmTask& task : tasks) {
    if (judged_.count({task.job, task.index}) != 0) continue;
    if (task.held()) {
      judged_.emplace(task.job, task.index);
      DropHeld(task);
    } else if (task.active()) {
      active.insert(task.index);
    } else {
      over[task.index] = &task;
    }
  }
  for (const uint64_t index : std::vector<uint64_t>(ledger_.open().begin(), ledger_.open().end())) {
    if (active.count(index) != 0 || to_submit_.count(index) != 0) {
      missing_since_.erase(index);
      continue;
    }
    const auto last = over.find(index);
    JudgeMissing(index, last == over.end() ? nullptr : last->second);
  }
}

// The task is neither queued nor running. What the controller says about it only
// decides how soon it counts as failed.
void SlurmStage::JudgeMissing(uint64_t index, const SlurmTask* last) {
  if (ledger_.Settle(index)) return;
  const bool told = last != nullptr && last->state != "COMPLETED";
  const auto [since, first] = missing_since_.try_emplace(index, Clock::now());
  if (!told && Clock::now() - since->second < timing_.grace) return;
  missing_since_.erase(index);
  if (last == nullptr) {
    CountFailure(index, 0, "ended without its output", true);
    return;
  }
  judged_.emplace(last->job, index);
  std::string why = last->state;
  if (!last->host.empty()) {
    why += " on " + last->host;
    failed_on_[index].insert(last->host);
  }
  if (last->state == "COMPLETED") why += ", but its output is not there or does not verify";
  if (last->state == "TIMEOUT") why += " (--time gives it more)";
  if (last->state == "OUT_OF_MEMORY") why += " (--sbatch=--mem=SIZE gives it more)";
  // A cancelled one somebody wanted to end.
  CountFailure(index, last->job, why, last->state != "CANCELLED");
}

void SlurmStage::DropHeld(const SlurmTask& task) {
  static_cast<void>(queue_.CancelTask(task));
  if (ledger_.open().count(task.index) == 0 || ledger_.Settle(task.index)) return;
  CountFailure(task.index, task.job, "held (" + task.reason + ")", true);
}

void SlurmStage::CountFailure(uint64_t index, uint64_t job, const std::string& why,
                              bool may_repeat) {
  const std::string in_job = job == 0 ? "" : "job " + std::to_string(job) + ": ";
  const bool again = ledger_.CountFailure(index, in_job + why, may_repeat);
  if (again) to_submit_.insert(index);
  failures_to_tell_[why + (again ? "; submitted again" : "")].insert(index);
}

// Together: a bad host may fail hundreds of tasks at once.
void SlurmStage::TellFailures() {
  for (const auto& [what, indexes] : failures_to_tell_) {
    Note((indexes.size() == 1 ? "task " : "tasks ") + IndexRanges(indexes) + ": " + what);
  }
  failures_to_tell_.clear();
}

// A controller that restarts knows its jobs afterwards; the hosts go on meanwhile.
Status SlurmStage::Away(const Error& error) {
  if (!SlurmQueue::MayPass(error)) return error;
  if (!away_since_) {
    away_since_ = Clock::now();
    Note("the controller does not answer, waiting for it: " + error.message);
  }
  if (Clock::now() - *away_since_ < timing_.patience) return {};
  return Error{.message = error.message,
               .hint = "jobs already submitted go on; run the same command again later, or: " +
                       queue_.CancelLine()};
}

void SlurmStage::Back() {
  if (!away_since_) return;
  Note("the controller answers again");
  away_since_.reset();
}

// A queue that does not move deserves a word, once for each reason.
void SlurmStage::NotePending(const std::vector<SlurmTask>& tasks) {
  size_t pending = 0;
  std::string reason;
  for (const SlurmTask& task : tasks) {
    if (task.state == "RUNNING") return;
    if (task.state != "PENDING" || ledger_.open().count(task.index) == 0) continue;
    ++pending;
    if (task.reason != "None" && task.reason != "Priority" && task.reason != "BeginTime") {
      reason = task.reason;
    }
  }
  if (reason.empty() || reason == pending_reason_) return;
  pending_reason_ = reason;
  Note("nothing runs, " + std::to_string(pending) + " tasks are pending: " + reason);
}

void SlurmStage::CancelAll() {
  const Status cancelled = queue_.CancelAll();
  if (cancelled.ok()) return;
  Note(cancelled.error().message + "; cancel the jobs with: " + queue_.CancelLine());
}

}  // namespace

Result<StageOutcome> SlurmEngine::Run(const std::string& run_folder, const Stage& stage,
                                      Progress& progress) {
  std::error_code code;
  // Hosts start in a folder of their own, and names of jobs follow from the path.
  const std::string folder = std::filesystem::canonical(run_folder, code).string();
  if (code) return Error{.message = "cannot be found: " + code.message(), .file = run_folder};
  TaskLedger ledger(folder, stage, control_.attempts, progress);
  if (ledger.open().empty()) return ledger.Finish(false);
  std::filesystem::create_directories(folder + "/logs", code);
  if (code) return Error{.message = "cannot make logs/: " + code.message(), .file = folder};
  SlurmStage work(SlurmQueue(folder, stage, options_), ledger, control_, timing_, known_to_answer_);
  CULPRIT_ASSIGN(const bool whole, work.Run());
  return ledger.Finish(!whole);
}

}  // namespace culprit::scale
