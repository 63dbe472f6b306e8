// SPDX-License-Identifier: Apache-2.0
#include "scale/thread_engine.h"

#include <mutex>

#include "base/parallel.h"
#include "scale/task_ledger.h"

namespace culprit::scale {

Result<StageOutcome> ThreadEngine::Run(const std::string& run_folder, const Stage& stage,
                                       Progress& progress) {
  TaskLedger ledger(run_folder, stage, 1, progress);
  const std::vector<uint64_t> open(ledger.open().begin(), ledger.open().end());
  std::mutex mutex;  // of the ledger and of `stopped`
  bool stopped = false;
  ParallelFor(open.size(), jobs_, [&](size_t i) {
    if (control_.stop && control_.stop()) {
      const std::lock_guard lock(mutex);
      stopped = true;
      return;
    }
    const Status status = stage.run(open[i]);
    const bool done = status.ok() && stage.done(open[i]);
    const std::lock_guard lock(mutex);
    if (done) {
      ledger.MarkDone(open[i]);
    } else {
      ledger.CountFailure(open[i],
                          status.ok() ? "its output does not verify" : status.error().ToString());
    }
  });
  return ledger.Finish(stopped);
}

}  // namespace culprit::scale
