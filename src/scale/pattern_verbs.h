// SPDX-License-Identifier: Apache-2.0
//
// The verbs of mining as a run (mine/subtree.h): map mines one piece of the search
// over weighted stacks, reduce merges the pieces of one part, finalize the parts. What
// finalize leaves are the patterns of mine::MineMaximal, byte for byte, for any number
// of pieces. All tasks read the same stacks, RUN/database, sealed with the digest that
// the plan names; traces and corpus play no part. Memory of map: the stacks as they are
// in RUN/database, and those of its piece once more.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "mine/sequences.h"
#include "mine/subtree.h"
#include "scale/plan.h"
#include "scale/run_folder.h"

namespace culprit::scale {

// `corpus` is where the stacks come from; it names the run.
Plan MakePatternsPlan(const std::string& corpus, const mine::WeightedSequences& database,
                      const PatternsPlan& patterns, uint64_t pieces_a_part = 32);
// Makes the run and puts the stacks there.
Result<RunFolder> CreatePatternsRun(const std::string& path, const Plan& plan,
                                    const mine::WeightedSequences& database);

Status MapPatterns(const RunFolder& run, uint64_t piece, size_t jobs);
Status ReducePatterns(const RunFolder& run, uint64_t part);
Status FinalizePatterns(const RunFolder& run);

// What a finished run has found.
Result<mine::Subtree> ReadPatternsResult(const RunFolder& run);

}  // namespace culprit::scale
