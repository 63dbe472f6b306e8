// SPDX-License-Identifier: Apache-2.0
//
// The verbs of a run: map reads the traces of one shard (or their summaries) and
// puts out their evidence, added up; reduce adds up the shards of one part;
// finalize the parts. The evidence that finalize leaves is, byte for byte, what
// one process would have gathered, so every analysis gives the same report.
//
// Each is idempotent: it reads what is in the run folder and the corpus and writes
// one output. Reduce and finalize are Errors while an output that they need is
// missing. Memory: map as for gathering (corpus/gather.h); the others the tables of
// the sum, its rows up to the bound (row_log.h), and beside them one output at a
// time, encoded and decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "causality/evidence.h"
#include "scale/run_folder.h"
#include "scale/stage.h"
#include "stackmine/evidence.h"

namespace culprit::scale {

struct TaskOptions {
  size_t jobs = 1;            // threads of one task; 0: all hardware threads
  uint64_t memory_bytes = 0;  // for traces and rows in memory at a time; 0: no bound
  bool use_summaries = true;
};

Status MapShard(const RunFolder& run, uint64_t shard, const TaskOptions& options,
                Progress& progress);
Status ReducePart(const RunFolder& run, uint64_t part, const TaskOptions& options);
Status Finalize(const RunFolder& run, const TaskOptions& options);
// Any of them; an index that the run does not have is an Error.
Status RunTask(const RunFolder& run, Verb verb, uint64_t index, const TaskOptions& options,
               Progress& progress);

// The three stages in order, for an engine to run one after the other. `run` must
// outlive them.
std::vector<Stage> StagesOf(const RunFolder& run, const TaskOptions& options);

// What a finished run has found.
struct RunEvidence {
  std::optional<stackmine::Evidence> mine;
  std::optional<causality::Evidence> causes;
};
// Rows beyond the bound are on disk; 0: no bound.
Result<RunEvidence> ReadResult(const RunFolder& run, uint64_t memory_bytes = 0);

}  // namespace culprit::scale
