// SPDX-License-Identifier: Apache-2.0
//
// FillFromLooks: puts what guards saw of slow units into the holes of a recording.
// A recorder that must keep a budget on a busy machine leaves waits out and keeps
// their sums; but a unit past its threshold was looked at from outside, several
// times, and its CPU time was measured. So where a thread's tiles within such a unit
// are sums without stacks, they become running, ready and waiting tiles of the
// unit's own lengths with the stacks that were seen, shared by how often; a running
// span without a sample gets the stack seen running most. All of these are marked as
// inferred. What was recorded is never changed, and each thread's tiles still cover
// its life without a gap. O(events + units · tiles of their threads).
#pragma once

#include <cstdint>
#include <span>

#include "guard/unit_report.h"
#include "trace/trace.h"

namespace culprit::watch {

// Times of reports and trace are of one clock. Returns how many units were filled.
uint64_t FillFromLooks(std::span<const guard::UnitReport> reports, trace::Trace& trace);

}  // namespace culprit::watch
