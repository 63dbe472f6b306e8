// SPDX-License-Identifier: Apache-2.0
//
// Where the traces of a corpus are read: in this process, or as a run whose
// shards are spread over hosts (scale/engine.h). The flags that say so, and the
// run itself: planned, carried out stage by stage with its notes and failures
// told to the user, resumable by the same command, ended by Ctrl-C.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "corpus/gather.h"
#include "scale/plan.h"
#include "scale/verbs.h"
#include "stackmine/patterns.h"

namespace culprit::cli {

// --engine, --run, --shards, --partition, --time, --account, --sbatch, --command,
// --hosts, --program.
std::vector<Flag> EngineFlags();
// The same for commands that mine, with --subtrees.
std::vector<Flag> MiningEngineFlags();

// Whether they ask for a run; an Error if they do not fit together.
Result<bool> WantsRun(const Arguments& arguments);

// An Error for what cannot be read as these arguments ask: neither a corpus nor, without
// a run, a trace. For commands that read several one after the other.
Status CheckSource(const std::string& path, const Arguments& arguments);

// Runs the plan's stages, and `read` on what they left. The run folder is --run, or
// the folder `below` of it for a command with several runs, or one beside the corpus
// that is removed when all went well. Of `bounds`, the largest
// trace goes into the plan; jobs is how many tasks the engines threads and command
// do at a time; the rest is for tasks in this process.
Status CarryOut(const std::string& corpus, scale::PlanOptions options,
                const corpus::GatherOptions& bounds, const Arguments& arguments, Output& output,
                const std::function<Status(const scale::RunFolder&)>& read,
                const std::string& below = {});

// Patterns mined by the engine (scale/pattern_verbs.h), if --subtrees asks for it or,
// by Slurm or a launcher, the stacks are many; else in this process. Where a bound on
// patterns is spent, or there is one on time or memory, in this process too. The
// arguments and the output must outlive it.
stackmine::MaximalMiner MinerOf(const std::string& corpus, const corpus::GatherOptions& bounds,
                                const Arguments& arguments, Output& output);

// The evidence that a run finds.
Result<scale::RunEvidence> GatherByRun(const std::string& corpus, scale::PlanOptions options,
                                       const corpus::GatherOptions& bounds,
                                       const Arguments& arguments, Output& output,
                                       const std::string& below = {});

}  // namespace culprit::cli
