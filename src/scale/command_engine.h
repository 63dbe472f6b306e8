// SPDX-License-Identifier: Apache-2.0
//
// CommandEngine: the tasks of a stage through any launcher (ssh, kubectl, another
// scheduler's blocking submit), called once a task with a bounded number at a
// time, or, where the template has {indexes}, once for all that is missing. A
// launcher must return when its work is over; whether the work was done is told
// by the output, so its exit code only explains a failure.
//
// A task that failed is tried again, if possible on another slot; a slot whose
// launcher fails time after time while others work (a dead host) gets no more
// tasks. Logs are in the run folder. Stopping ends the launchers and everything
// in their process groups.
#pragma once

#include <chrono>

#include "scale/command_template.h"
#include "scale/engine.h"

namespace culprit::scale {

struct CommandOptions {
  std::string program;             // culprit, as the hosts find it
  std::vector<std::string> hosts;  // of {host}, in turn by slot
  std::vector<std::string> task_flags;
  size_t slots = 0;  // tasks at a time; 0: one for each host, else hardware threads
  // From the end of a launcher until its output must be seen: shared file systems
  // show new files late.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
};

class CommandEngine : public Engine {
 public:
  CommandEngine(CommandTemplate command, CommandOptions options, EngineControl control);

  std::string_view name() const override { return "command"; }
  Result<StageOutcome> Run(const std::string& run_folder, const Stage& stage,
                           Progress& progress) override;

 private:
  CommandTemplate command_;
  CommandOptions options_;
  EngineControl control_;
};

}  // namespace culprit::scale
