// SPDX-License-Identifier: Apache-2.0
//
// ReduceTrace: one trace to its Evidence. Instances are the marked ones of the
// trace, or, where there are none, those found automatically; the area of
// interest is taken of each, and its events become rows. A wait without a stack
// is known by its thread and by who ended it instead, a run without a sample by
// its thread. O(n log n) in the events; the trace is not kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stackmine/evidence.h"
#include "trace/trace.h"
#include "waitgraph/area.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/timelines.h"

namespace culprit::stackmine {

struct ReduceOptions {
  waitgraph::AreaOptions area;
  waitgraph::AutoInstanceOptions automatic;
  bool always_automatic = false;       // even where instances are marked
  std::vector<std::string> scenarios;  // globs; empty: all
  int64_t slower_than_ns = 0;          // only instances that last at least as long
};

// Names of the pseudo-frames that stand for a missing stack, before the '!'.
inline constexpr std::string_view kThreadModule = "[thread]";
inline constexpr std::string_view kWokenByModule = "[woken by]";
inline constexpr std::string_view kDeviceModule = "[device]";
// "[thread]!worker"
bool IsPseudoFrame(std::string_view frame);

Evidence ReduceTrace(const trace::Trace& trace, const std::string& name,
                     const ReduceOptions& options);
// The same for who has the time lines already.
Evidence ReduceTrace(const waitgraph::Timelines& timelines, const std::string& name,
                     const ReduceOptions& options);

// "process/thread" with every number as '#', so that workers of a pool are one;
// "[unknown]" for none().
std::string ThreadRole(const trace::Dictionary& dictionary, trace::ThreadId thread);

}  // namespace culprit::stackmine
