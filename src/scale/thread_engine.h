// SPDX-License-Identifier: Apache-2.0
//
// ThreadEngine: the tasks of a stage in this process, several at a time. Each is
// tried once: the same work in the same process would fail the same way.
#pragma once

#include "scale/engine.h"

namespace culprit::scale {

class ThreadEngine : public Engine {
 public:
  // jobs == 0: as many tasks at a time as there are hardware threads.
  ThreadEngine(size_t jobs, EngineControl control) : jobs_(jobs), control_(std::move(control)) {}

  std::string_view name() const override { return "threads"; }
  Result<StageOutcome> Run(const std::string& run_folder, const Stage& stage,
                           Progress& progress) override;

 private:
  size_t jobs_;
  EngineControl control_;
};

}  // namespace culprit::scale
