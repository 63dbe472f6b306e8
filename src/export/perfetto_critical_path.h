// SPDX-License-Identifier: Apache-2.0
//
// The critical paths of a trace's instances (waitgraph/critical_path.h) as
// tracks of a Perfetto trace: under the track "critical paths" one track a
// scenario, more where its instances overlap. An instance is a slice; the
// segments of its path are slices within it, waits with what explains them
// within themselves, so that the innermost slices tile the instance. Names say
// what was done (function, wait class, device), annotations who did it.
//
// Paths need the whole trace in memory, some 80 bytes an event: a trace of more
// than kMaxPathEvents has no such tracks. Of many instances those that took
// longest are written, up to kMaxPathSlices slices; what is left out is counted.
#pragma once

#include <cstdint>

#include "base/diagnostics.h"
#include "export/perfetto_packets.h"
#include "trace/trace_reader.h"

namespace culprit::export_ {

inline constexpr uint64_t kMaxPathEvents = 8'000'000;
inline constexpr size_t kMaxPathSlices = 200'000;
// Readers of our own exports know these tracks by how their names begin.
inline constexpr std::string_view kPathTrack = "critical path";

// `first_ns` is the moment that is zero in the file, `next_uuid` the next free
// number of a track.
Status WriteCriticalPaths(const trace::TraceReader& reader, int64_t first_ns,
                          PacketSequence& packets, uint64_t& next_uuid, Diagnostics& diagnostics);

}  // namespace culprit::export_
