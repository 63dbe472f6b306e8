// SPDX-License-Identifier: Apache-2.0
//
// The head line of a record of `perf script`, in its dialects:
//
//   COMM PID[/TID] [\[CPU\]] [FLAGS] TIME: [PERIOD] EVENT: [PAYLOAD]
//   COMM PID[/TID] [\[CPU\]] [PERIOD] EVENT:
//
// COMM may hold blanks and digits: the first place where the rest fits ends it.
// Views point into the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "assemble/assembler.h"

namespace culprit::import_ {

struct PerfScriptHead {
  std::string_view comm;
  int64_t pid = assemble::kNoTid;
  int64_t tid = assemble::kNoTid;
  uint16_t cpu = assemble::kNoCpu;
  std::optional<int64_t> time_ns;  // nothing: the dialect without times
  std::optional<int64_t> period;   // in the event's own unit
  std::string_view event;          // "sched:sched_switch", "cycles:u"
  std::string_view payload;
};

// `with_time`: only heads that have one. Nothing: the line is no head.
std::optional<PerfScriptHead> ParsePerfScriptHead(std::string_view line, bool with_time);

// "cycles:u", "task-clock:ppp", "cpu-clock/freq=1000/" sample the processor or
// count; "sched:sched_switch" is a tracepoint.
bool IsTracepoint(std::string_view event);
// "cycles" of "cycles:u", "cpu-clock" of "cpu-clock/freq=1000/".
std::string_view BaseEvent(std::string_view event);

}  // namespace culprit::import_
