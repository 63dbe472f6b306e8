// SPDX-License-Identifier: Apache-2.0
//
// Breakdown: where the time of the instances went, as the initiating thread
// saw it: running (with samples or between them), waiting, ready, and what no
// event explains. Every nanosecond of every instance is in exactly one part:
//
//   running + not_sampled + wait + ready + unattributed = total
//
// Events are clipped to the instance. Beside the sums stand all stacks with
// their cost. This is the view before any causality: a wait is charged to the
// stack that waited. A trace without instances counts with each of its threads
// as one instance of the whole recording (scope kThreads).
//
// Breakdowns of several traces add up (BreakdownSum); stacks are matched by the
// names of their frames. Adding is exact and the result does not depend on the
// order, except for the ids in `dictionary`.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "trace/contents.h"
#include "trace/trace_reader.h"

namespace culprit::trace {

enum class BreakdownScope { kInstances, kThreads };

struct StackCost {
  StackId stack;  // in Breakdown::dictionary; none: no stack was recorded
  int64_t cost_ns = 0;
  uint64_t events = 0;
  uint64_t instances = 0;
  uint64_t traces = 0;
};

struct Breakdown {
  Dictionary dictionary;
  uint64_t traces = 0;
  uint64_t instances = 0;
  Contents contents;  // of everything read, whether in an instance or not
  int64_t total_ns = 0;
  int64_t running_ns = 0;
  int64_t not_sampled_ns = 0;
  int64_t wait_ns = 0;
  int64_t ready_ns = 0;
  int64_t unattributed_ns = 0;
  std::vector<StackCost> waits;  // costliest first, ties by name
  std::vector<StackCost> running;
  Diagnostics diagnostics;
};

// Reads the blocks that matter; damaged ones are counted and left out.
Breakdown BreakdownOf(const TraceReader& trace, BreakdownScope scope);

// Adds breakdowns up. Memory is that of the distinct stacks.
class BreakdownSum {
 public:
  void Add(const Breakdown& part);
  Breakdown Finish() &&;

 private:
  Breakdown sum_;
  std::unordered_map<StackId, StackCost> waits_;
  std::unordered_map<StackId, StackCost> running_;
};

}  // namespace culprit::trace
