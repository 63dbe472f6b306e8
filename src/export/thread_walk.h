// SPDX-License-Identifier: Apache-2.0
//
// WalkThreads: every readable event of a trace, a thread at a time and in time
// order within the thread, for formats that are written by thread. A file
// holds its events by time, so this reads it in rounds: each round takes as
// many threads as fit into kRoundEvents events and reads the blocks that have
// them. Memory is that, or the events of the busiest thread if it has more;
// a trace below the limit is read once.
//
// An unwait stands with the thread it woke, as in the file. A block that
// cannot be read is counted once and skipped.
#pragma once

#include <functional>
#include <vector>

#include "export/target.h"

namespace culprit::export_ {

inline constexpr uint64_t kRoundEvents = 2 * 1024 * 1024;

// Called for each thread by its id, also for those without events; last, if
// there are such events, for none().
using ThreadVisit = std::function<Status(trace::ThreadId, const std::vector<trace::Event>&)>;

Result<Summary> WalkThreads(const trace::TraceReader& reader, Progress* progress,
                            const ThreadVisit& visit, uint64_t round_events = kRoundEvents);

}  // namespace culprit::export_
