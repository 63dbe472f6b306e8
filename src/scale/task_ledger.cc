// SPDX-License-Identifier: Apache-2.0
#include "scale/task_ledger.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"

namespace culprit::scale {
namespace {

constexpr size_t kLogLines = 5;

}  // namespace

TaskLedger::TaskLedger(std::string run_folder, const Stage& stage, unsigned attempts,
                       Progress& progress)
    : run_folder_(std::move(run_folder)),
      stage_(stage),
      attempts_(std::max(attempts, 1U)),
      progress_(progress) {
  std::vector<uint8_t> done(stage.count);
  ParallelFor(done.size(), 0, [&](size_t i) { done[i] = stage.done(i) ? 1 : 0; });
  for (uint64_t i = 0; i < stage.count; ++i) {
    if (done[i] == 0) open_.insert(i);
  }
  outcome_.found_done = stage.count - open_.size();
  progress_.Start(std::string(VerbName(stage.verb)), "tasks", stage.count);
  progress_.Advance(outcome_.found_done);
}

size_t TaskLedger::SettleAll() {
  size_t settled = 0;
  for (const uint64_t index : std::vector<uint64_t>(open_.begin(), open_.end())) {
    if (Settle(index)) ++settled;
  }
  return settled;
}

bool TaskLedger::Settle(uint64_t index) {
  if (!stage_.done(index)) return false;
  MarkDone(index);
  return true;
}

void TaskLedger::MarkDone(uint64_t index) {
  if (open_.erase(index) == 0) return;
  ++outcome_.finished;
  progress_.Advance();
}

bool TaskLedger::CountFailure(uint64_t index, const std::string& why, bool may_repeat) {
  const unsigned tried = ++tried_[index];
  if (may_repeat && tried < attempts_) {
    ++outcome_.repeated;
    return true;
  }
  open_.erase(index);
  TaskFailure failure{.index = index, .attempts = tried, .why = why};
  for (const std::string& log : {LogPath(index), StageLogPath()}) {
    failure.last_lines = LastLines(log, kLogLines);
    if (failure.last_lines.empty()) continue;
    failure.log = log;
    break;
  }
  outcome_.failures.push_back(std::move(failure));
  return false;
}

std::string TaskLedger::LogPath(uint64_t index) const {
  return run_folder_ + "/" + TaskLog(stage_.verb, index);
}

std::string TaskLedger::StageLogPath() const {
  return run_folder_ + "/logs/" + std::string(VerbName(stage_.verb)) + ".log";
}

StageOutcome TaskLedger::Finish(bool stopped) {
  progress_.Finish();
  outcome_.stopped = stopped;
  std::sort(outcome_.failures.begin(), outcome_.failures.end(),
            [](const TaskFailure& a, const TaskFailure& b) { return a.index < b.index; });
  return std::move(outcome_);
}

}  // namespace culprit::scale
