// SPDX-License-Identifier: Apache-2.0
//
// RunFolder: where a run keeps its plan and what its tasks have put out.
//
//   RUN/plan.json            the plan (plan.h); written first, never changed
//   RUN/map/00017            evidence of shard 17, sealed (corpus/sealed_bytes.h)
//   RUN/reduce/00003         evidence of part 3
//   RUN/finalize/00000       the evidence of the whole
//   RUN/database             of a run that mines: the weighted stacks
//
// An output carries the id of its task: a digest of the program's version, the
// parameters and the content of the traces behind it. It is put in place whole
// (temporary, fsync, rename), so two hosts that do one task at once are harmless
// and a task is done if and only if its file is there, is whole and has that id.
//
// Immutable after opening; safe from several threads and processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "scale/plan.h"
#include "scale/stage.h"

namespace culprit::scale {

class RunFolder {
 public:
  // Makes the folder and writes the plan. A folder that has the same plan already
  // is gone on with; one with another plan, or other files, is an Error.
  static Result<RunFolder> Create(const std::string& path, const Plan& plan);
  // An Error if there is no plan, or it is of another version of the program.
  static Result<RunFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Plan& plan() const { return plan_; }

  // How many tasks the verb has.
  uint64_t Count(Verb verb) const;
  bool TaskDone(Verb verb, uint64_t index) const;
  std::string OutputPath(Verb verb, uint64_t index) const;
  std::string TaskId(Verb verb, uint64_t index) const;

  Status WriteOutput(Verb verb, uint64_t index, std::string_view payload) const;
  // An Error if the task is not done.
  Result<std::string> ReadOutput(Verb verb, uint64_t index) const;

 private:
  RunFolder(std::string path, Plan plan);
  std::string PatternsTaskId(Verb verb, uint64_t index) const;

  std::string path_;
  Plan plan_;
  std::string parameters_;  // what all tasks depend on, as bytes
};

}  // namespace culprit::scale
