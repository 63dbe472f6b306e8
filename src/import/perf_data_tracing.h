// SPDX-License-Identifier: Apache-2.0
//
// The tracing data of a perf.data: the formats of the tracepoints that were
// recorded, in the layout trace-cmd once had:
//
//   17 08 44 "tracing", version NUL, big u8, long u8, page u32,
//   "header_page" NUL size u64 text, "header_event" NUL size u64 text,
//   count u32 { size u64 format },
//   systems u32 { name NUL, count u32 { size u64 format } },
//   kallsyms size u32 text, ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "import/event_format.h"

namespace culprit::import_ {

struct PerfTracingData {
  std::vector<EventFormat> formats;
  std::string kallsyms;  // empty in what perf writes today
};

// What can be read of it; what is cut or not understood is counted at `offset`.
PerfTracingData ParsePerfTracingData(std::string_view bytes, bool big, uint64_t offset,
                                     Diagnostics& diagnostics);

}  // namespace culprit::import_
