// SPDX-License-Identifier: Apache-2.0
//
// The idle wait of a thread: where it waits to be asked (SPEC §3, rules 1 to 5).
//
// FindLoop is rule 1: the deepest path that practically all of a thread's
// recurring waits go through, never inside the waiting call itself. Where all
// waits go the same way on from there, they say nothing about where the loop is;
// then the loop is the deepest path that as many of the waits, 90 % of the
// wake-ups the thread makes and 70 % of its samples go through. "Practically all"
// is 98 %; if that shows nothing idle, 90 %: too strict a share finds no loop
// where a thread also starts up, too lax a one takes the many replies that a
// request waits for as the loop.
//
// JudgeLoop is rules 2 to 5, over the joined activity of threads with that loop.
// A branch is idle if it has waits that may be idle, none that is work, and
// wake-ups of others for at most 5 % of its waits. Waits that may be locks as
// well as conditions (a futex whose caller has no name) count as idle only if no
// branch is without them. If no branch of the loop is idle, one that is for all
// but 10 % is looked into; else callers are tried in turn: a convoy can hold nearly
// all of a thread's waits, and the idle wait then lies above the path they share. Where the
// program's frames are missing its loop is not known, and all idle branches count instead of the
// one with most waits.
//
// Pure functions; cost is linear in the paths of the tree.
#pragma once

#include <vector>

#include "waitgraph/idle_wait_activity.h"
#include "waitgraph/idle_wait_paths.h"

namespace culprit::waitgraph {

struct Loop {
  PathId path = kRootPath;  // the root if there is nothing in common, or no waits
  // Something else than the commonest wait was seen to go on from there. If not,
  // the loop is only known to be somewhere on the way to it.
  bool certain = false;
};
enum class LoopSearch : uint8_t { kStrict, kLax };
Loop FindLoop(const FunctionPaths& paths, const ActivityTree& tree, LoopSearch search);

enum class BranchVerdict : uint8_t { kNoWaits, kWork, kMaybeIdle, kIdle };
BranchVerdict JudgeBranch(const ActivityCounts& counts);

struct LoopVerdict {
  std::vector<PathId> loops;      // the loop's paths; of one function, unless there is none
  FunctionId idle = kNoFunction;  // the branch below them that won; kNoFunction: never idle
  bool by_sync = false;           // it has waits that may be locks
  // Branches whose waits are idle: of the loops, and above them (rule 5).
  std::vector<PathId> idle_paths;
  // Branches of the loops that do work.
  std::vector<PathId> work_paths;
};
LoopVerdict JudgeLoop(const FunctionPaths& paths, const ActivityTree& tree,
                      std::vector<PathId> loops, bool kernel_thread);

}  // namespace culprit::waitgraph
