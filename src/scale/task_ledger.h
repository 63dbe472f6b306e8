// SPDX-License-Identifier: Apache-2.0
//
// TaskLedger: which tasks of a stage are still to be done, how often each was
// tried, and what failed for good. Engines differ in how they start tasks and in
// how they learn that one ended; the bookkeeping is here once. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "scale/engine.h"

namespace culprit::scale {

class TaskLedger {
 public:
  // Asks for every task whether it is done (in parallel: outputs are verified).
  TaskLedger(std::string run_folder, const Stage& stage, unsigned attempts, Progress& progress);

  // Neither done nor failed for good; ascending.
  const std::set<uint64_t>& open() const { return open_; }
  // Takes out of open() what is done by now. Its number.
  size_t SettleAll();
  bool Settle(uint64_t index);
  // The same for a task whose output was found to verify.
  void MarkDone(uint64_t index);
  // An attempt at an open task ended without its output. True if it may be tried
  // again; else it leaves open() and is a failure.
  bool CountFailure(uint64_t index, const std::string& why, bool may_repeat = true);
  // The path of the task's log, and of one for all tasks together.
  std::string LogPath(uint64_t index) const;
  std::string StageLogPath() const;

  StageOutcome Finish(bool stopped);

 private:
  std::string run_folder_;
  const Stage& stage_;
  unsigned attempts_;
  Progress& progress_;
  std::set<uint64_t> open_;
  std::map<uint64_t, unsigned> tried_;  // failed attempts
  StageOutcome outcome_;
};

}  // namespace culprit::scale
