// SPDX-License-Identifier: Apache-2.0
//
// Execution units: the system calls of a thread cut where the thread did
// something else for long (PerfScope, 3.2.1). A gap reaches from a call's exit
// to the next call's entry; it cuts if it exceeds mean + 2 sigma of all gaps of
// the trace. Time off the CPU does not count into a gap: where the trace has
// switches it is taken off; where it has none, a gap during which the thread
// changed its CPU neither cuts nor counts. Cutting is exact integer work.
//
// Where the trace has instances, such as the units of guards, those are the units:
// they cut where they begin and end, gaps cut only outside of them.
//
// A pure function of the log; O(n).
#pragma once

#include <cstdint>
#include <vector>

#include "episode/syscall_log.h"

namespace culprit::episode {

// Calls [first, first + count) of a thread of the log.
struct Unit {
  uint32_t thread = 0;
  uint32_t first = 0;
  uint32_t count = 0;

  bool operator==(const Unit&) const = default;
};

enum class UnitSource { kAuto, kGaps, kInstances };  // kAuto: instances where there are any

struct Units {
  std::vector<Unit> units;  // by thread, then time
  uint64_t gaps = 0;
  uint64_t explained = 0;  // gaps that a context switch made, in part or whole
  uint64_t mean_gap_ns = 0;
  uint64_t bound_ns = 0;   // about: what cut
  uint64_t instances = 0;  // that cut, too
};

Units SplitUnits(const SyscallLog& log, UnitSource source = UnitSource::kAuto);

}  // namespace culprit::episode
