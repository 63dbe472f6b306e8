// SPDX-License-Identifier: Apache-2.0
//
// SlurmQueue: what culprit asks of Slurm for one stage of a run, through its
// command-line programs (sbatch, squeue, scancel): they are there on every
// cluster whatever its version, and need no accounting. The jobs of a stage are
// named after the run folder, so jobs that an earlier culprit left behind are
// found again. Each call starts a process; squeue makes the controller work, so
// it is for every few seconds, not more often.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scale/stage.h"

namespace culprit::scale {

struct SlurmOptions {
  std::string program;    // culprit, as the hosts find it
  std::string partition;  // empty, here and below: the cluster's default
  std::string time;       // as sbatch has it: "30", "1:30:00", "2-0"
  std::string account;
  std::vector<std::string> more;        // further words for sbatch: "--mem=4G"
  std::vector<std::string> task_flags;  // further words for `culprit shard`
};

// A task as the controller sees it. One submitted twice is there twice.
struct SlurmTask {
  uint64_t job = 0;  // of the array
  uint64_t index = 0;
  std::string state;   // "PENDING", "RUNNING", "COMPLETED", "NODE_FAIL"
  std::string host;    // where it ran last; may be empty
  std::string reason;  // why it is pending

  bool active() const;
  // Pending for good: Slurm itself has given up on it.
  bool held() const;
};

class SlurmQueue {
 public:
  SlurmQueue(const std::string& run_folder, const Stage& stage, SlurmOptions options);

  // Submits tasks as job arrays, to none of the hosts in `avoid` if there are
  // others. Those that were, also when it fails midway, are taken out of `indexes`.
  Status Submit(std::set<uint64_t>& indexes, const std::set<std::string>& avoid) const;
  // All tasks of the stage that the controller knows; finished ones too, as long
  // as it remembers them.
  Result<std::vector<SlurmTask>> Tasks() const;
  Status CancelAll() const;
  Status CancelTask(const SlurmTask& task) const;

  // The line that cancels all, for a person to type.
  std::string CancelLine() const;
  // Whether such a failure may pass: the controller is away or too busy.
  static bool MayPass(const Error& error);

 private:
  Status SubmitBlock(uint64_t block, const std::set<uint64_t>& indexes,
                     const std::set<std::string>& avoid) const;
  std::vector<std::string> CancelWords() const;

  std::string run_folder_;
  Verb verb_;
  SlurmOptions options_;
  std::string job_name_;  // of a block: with its number after it
  std::string all_names_;
};

// A line that Tasks() asks for, "JOB|ARRAY INDEX|STATE|HOST|NAME|REASON", where
// NAME ends with the number of the block; nothing if it is no such line.
std::optional<SlurmTask> ParseSlurmTask(std::string_view line);

}  // namespace culprit::scale
