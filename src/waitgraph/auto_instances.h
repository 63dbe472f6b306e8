// SPDX-License-Identifier: Apache-2.0
//
// Instances found automatically (SPEC §3): most threads are event loops, and
// time spent waiting for the next request is nobody's delay. For each thread
// the idle wait is found by the rules of SPEC §3 (loop frame, branches below
// it, which branches only wait to be asked, roles shared by threads of one
// process image); the spans between two idle waits are the instances, from the
// wake-up, so the ready delay counts. A thread that never idles is one
// instance; one that only idles is left out: all its waits are idle, nobody but
// a timer ever ended one, and it ran for at most 1 % of its time. Spans cut by
// the ends of the trace are instances too. Everything that was decided is in
// the result, so that it can be shown and overridden. docs/instances.md tells it
// to users.
//
// Conserved to the nanosecond: instances, idle waits and threads left out together
// are the time from each thread's first tile to its last, within the recording.
// Deterministic; O(n log n).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

struct AutoInstanceOptions {
  // Globs over "module!function": a wait whose stack has a matching frame is
  // idle / is never idle, whatever the rules say.
  std::vector<std::string> idle;
  std::vector<std::string> not_idle;
  bool kernel_threads = true;
};

// What the verdict on a role stands on; where it is not stacks, a wait for a
// reply cannot be told from a wait for a request.
enum class RoleBasis : uint8_t { kNothing, kWakers, kSyscalls, kStacks };
std::string_view Name(RoleBasis basis);

// One role: threads of one process image with the same loop frame.
struct Role {
  std::string scenario;  // "postgres: PostgresMain", as instances are called
  std::string process;
  std::string loop_frame;  // "module!function"; empty: no loop was found
  std::string idle_frame;  // the branch below it that was called idle; empty: never idles
  RoleBasis basis = RoleBasis::kNothing;
  bool by_sync = false;  // its idle waits may be locks: nothing names the futex's caller
  uint64_t threads = 0;  // with instances
  uint64_t instances = 0;
  int64_t instance_ns = 0;
  int64_t idle_ns = 0;  // of those threads

  // Threads of this role that only idle, and the whole of their time.
  uint64_t left_out_threads = 0;
  int64_t left_out_ns = 0;
};

struct AutoInstances {
  // Scenario names are interned in `scenarios`: Instance::scenario is an index there.
  std::vector<std::string> scenarios;
  std::vector<trace::Instance> instances;  // by t0, then thread
  std::vector<Role> roles;                 // costliest first
  std::vector<bool> idle_wait;             // by EventIndex: this wait was called idle
  int64_t idle_ns = 0;
  int64_t left_out_ns = 0;  // of threads that only idle, or never ran and are not stuck
  uint64_t left_out_threads = 0;
  std::string reason;  // why there are no instances; empty if there are
};

AutoInstances FindInstances(const Timelines& timelines, const AutoInstanceOptions& options = {});

}  // namespace culprit::waitgraph
