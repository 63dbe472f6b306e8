// SPDX-License-Identifier: Apache-2.0
//
// Engine: runs the tasks of a stage that are not done, somewhere, until each is
// done or has failed too often. thread_engine.h does them in this process,
// slurm_engine.h as job arrays, command_engine.h through any launcher; the last
// two start `culprit shard VERB RUN INDEX`, so every host needs the run folder
// and the corpus under the same path.
//
// A task that fails is tried again, `attempts` times in all. What failed for
// good is in StageOutcome::failures with the end of its log; the outputs of the
// others stay, so the next run does only what is missing. When control.stop says
// so, an engine ends what it started and returns with stopped set.
//
// Engines are used by one thread at a time; a stage knows nothing of the one before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "scale/stage.h"

namespace culprit::scale {

struct EngineControl {
  std::function<bool()> stop;                         // asked several times a second
  std::function<void(const std::string& line)> note;  // what a user should know now
  unsigned attempts = 3;                              // of one task in one Run
};

struct TaskFailure {
  uint64_t index = 0;
  unsigned attempts = 0;
  std::string why;                      // "ended without its output", "cannot write: ..."
  std::string log;                      // path; empty where there is none
  std::vector<std::string> last_lines;  // of that log
};

struct StageOutcome {
  uint64_t found_done = 0;  // before anything was started
  uint64_t finished = 0;    // by this run
  uint64_t repeated = 0;    // attempts after a first one
  bool stopped = false;
  std::vector<TaskFailure> failures;  // by index

  bool ok() const { return !stopped && failures.empty(); }
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  // An Error where nothing can be started at all: no such program, no such
  // partition, a controller that does not answer.
  virtual Result<StageOutcome> Run(const std::string& run_folder, const Stage& stage,
                                   Progress& progress) = 0;
};

// An Error that names the failed tasks and how to go on; nothing if ok().
Status ToStatus(const StageOutcome& outcome, const Stage& stage, const std::string& run_folder);

// Where the log of a task is, relative to the run folder: "logs/map-17.log".
std::string TaskLog(Verb verb, uint64_t index);
// The last lines of a text file, at most `lines` of them and 4 kB; none if it
// cannot be read.
std::vector<std::string> LastLines(const std::string& path, size_t lines);

}  // namespace culprit::scale
