// SPDX-License-Identifier: Apache-2.0
//
// SlurmEngine: the tasks of a stage as Slurm job arrays, only of what is not
// done. A host that dies or is cut off is Slurm's matter (jobs are requeued); a
// task that ends without its output is submitted again, away from the hosts where
// it failed: a host with a full disk would else take one after the other and fail
// them all. The engine believes the outputs, not the controller: a stage is over
// when all outputs verify, though jobs may still be listed, and a controller that
// is away for a while is waited for. Jobs that an earlier culprit submitted for
// the same run folder are adopted, not doubled. Stopping cancels what is queued
// and running.
#pragma once

#include <chrono>

#include "scale/engine.h"
#include "scale/slurm_queue.h"

namespace culprit::scale {

struct SlurmTiming {
  std::chrono::milliseconds look = std::chrono::milliseconds(500);  // at the outputs
  std::chrono::milliseconds ask = std::chrono::seconds(3);          // the controller
  // From the end of a job until its output must be seen: shared file systems
  // show new files late.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
  // How long a controller may be away.
  std::chrono::milliseconds patience = std::chrono::minutes(15);
};

class SlurmEngine : public Engine {
 public:
  SlurmEngine(SlurmOptions options, EngineControl control, SlurmTiming timing = {})
      : options_(std::move(options)), control_(std::move(control)), timing_(timing) {}

  std::string_view name() const override { return "slurm"; }
  Result<StageOutcome> Run(const std::string& run_folder, const Stage& stage,
                           Progress& progress) override;

 private:
  SlurmOptions options_;
  EngineControl control_;
  SlurmTiming timing_;
  // A controller that never answered is not there; one that did is waited for.
  bool known_to_answer_ = false;
};

}  // namespace culprit::scale
