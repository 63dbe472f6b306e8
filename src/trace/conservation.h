// SPDX-License-Identifier: Apache-2.0
//
// CheckConservation: does a trace keep account of all its time? In a trace
// with switches the tiles of a thread (running, wait, ready) must abut, no CPU
// may run two threads at once, and nothing may lie outside the recording. A
// naive check on purpose: it shares nothing with whoever made the trace.
// O(n log n) in the number of events.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.h"

namespace culprit::trace {

struct ConservationReport {
  uint64_t threads_checked = 0;
  uint64_t cpus_checked = 0;
  uint64_t gaps = 0;          // between two tiles of a thread
  uint64_t overlaps = 0;      // of two tiles of a thread
  uint64_t cpu_overlaps = 0;  // of two running tiles on a CPU
  uint64_t out_of_range = 0;  // events outside [begin_ns, end_ns)
  int64_t gap_ns = 0;
  int64_t overlap_ns = 0;
  int64_t busy_ns = 0;  // over all CPUs; busy + idle = CPUs * duration
  int64_t idle_ns = 0;
  std::string first_problem;  // empty if there is none

  bool ok() const { return first_problem.empty(); }
};

ConservationReport CheckConservation(const Trace& trace);

}  // namespace culprit::trace
