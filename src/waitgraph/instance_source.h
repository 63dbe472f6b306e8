// SPDX-License-Identifier: Apache-2.0
//
// The instances an analysis of a trace looks at: the trace's own (marks, rules,
// guards) if it has any, else those found automatically. Which it was, what was
// called idle and why there may be none stands in the result, so that a report
// can say so. Own instances that cannot be (no thread, no duration, outside the
// recording) are counted, not used; those that reach beyond it are clipped.
//
// A function of the trace and the options; O(n log n) at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/timelines.h"

namespace culprit::waitgraph {

enum class InstanceOrigin : uint8_t { kNone, kOwn, kAutomatic };
std::string_view Name(InstanceOrigin origin);

struct InstanceSourceOptions {
  enum class Wanted : uint8_t { kOwnElseAutomatic, kOwn, kAutomatic };
  Wanted wanted = Wanted::kOwnElseAutomatic;
  // Globs over scenario names; empty: all.
  std::vector<std::string> scenarios;
  AutoInstanceOptions automatic;
};

struct InstanceSource {
  InstanceOrigin origin = InstanceOrigin::kNone;
  // Instance::scenario is an index in `scenarios`, not an id of the dictionary.
  std::vector<std::string> scenarios;
  std::vector<trace::Instance> instances;  // by t0, then thread
  // By EventIndex; all false for own instances. Waits to show as WaitClass::kRequest.
  std::vector<bool> idle_wait;
  std::vector<Role> roles;  // automatic ones: what was chosen
  int64_t instance_ns = 0;
  int64_t idle_ns = 0;
  int64_t left_out_ns = 0;
  uint64_t left_out_threads = 0;
  uint64_t not_wanted = 0;  // instances of other scenarios
  uint64_t impossible = 0;  // own instances that cannot be
  std::string reason;       // why there are no instances; empty if there are
};

InstanceSource InstancesOf(const Timelines& timelines, const InstanceSourceOptions& options = {});

}  // namespace culprit::waitgraph
