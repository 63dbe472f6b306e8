// SPDX-License-Identifier: Apache-2.0
//
// Roles: threads of one process image with the same loop (SPEC §3, rule 6). What
// one of them shows to be idle is idle for all, so a thread seen idle once, or
// never, is still cut like its fellows. A thread whose own waits show only a part
// of what its fellows do (all in one lock, say) has a loop that lies inside a
// branch of theirs; it is of their role, and their verdict on that branch stands.
//
// Deterministic: roles are in order of image and loop. O(paths) over all threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/dictionary.h"
#include "waitgraph/idle_wait.h"
#include "waitgraph/idle_wait_activity.h"
#include "waitgraph/idle_wait_paths.h"

namespace culprit::waitgraph {

// A name without what numbers its bearers: "kworker/1:1H" -> "kworker",
// "Binder:512_3" -> "Binder", "pool-1-thread-12" -> "pool-1-thread".
std::string_view WithoutNumber(std::string_view name);

// The program a thread runs: its process's name; for kernel threads their own,
// without number.
std::string ImageOf(const trace::Dictionary& dictionary, trace::ThreadId thread,
                    bool kernel_thread);

struct RoleVerdict {
  std::string image;
  std::string name;  // of the role within the image; may be empty
  LoopVerdict loop;
  bool certain = false;  // the loop was seen, not guessed (idle_wait.h)
  bool kernel_thread = false;
  std::vector<trace::ThreadId> threads;  // ascending
  uint64_t by_evidence[4] = {};          // their waits, by WaitEvidence

  // Whether waits at this path are idle, if their purpose allows it.
  bool IsIdle(const FunctionPaths& paths, PathId path) const;
};

// `threads`: those to sort into roles; `activity` by thread.
std::vector<RoleVerdict> FindRoles(const trace::Dictionary& dictionary, const FunctionPaths& paths,
                                   const std::vector<ThreadActivity>& activity,
                                   const std::vector<trace::ThreadId>& threads);

// A short name: "postgres: PostgresMain", "java: C2 CompilerThread", "sleep".
std::string ScenarioOf(const RoleVerdict& role);

}  // namespace culprit::waitgraph
