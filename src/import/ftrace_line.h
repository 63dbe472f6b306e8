// SPDX-License-Identifier: Apache-2.0
//
// One event line of ftrace's text, as tracefs, trace-cmd report, atrace and
// systrace print it:
//
//   COMM-TID [(TGID)] \[CPU\] [FLAGS] TIME: EVENT: PAYLOAD
//   COMM-TID          \[CPU\] [FLAGS] TIME: sys_read(fd: 3, ...)
//   COMM-TID          \[CPU\] [FLAGS] TIME: sys_read -> 0x20
//   COMM-TID          \[CPU\] [FLAGS] TIME: <stack trace>
//
// trace-cmd report -l writes CPU and FLAGS as one word without brackets, and
// --ts-diff a "(+NUMBER)" before the event. COMM may hold blanks, dashes and
// brackets. Views point into the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "assemble/assembler.h"

namespace culprit::import_ {

struct FtraceLine {
  std::string_view comm;
  int64_t tid = assemble::kNoTid;
  int64_t tgid = assemble::kNoTid;
  uint16_t cpu = assemble::kNoCpu;
  std::optional<uint64_t> flags;  // as common_flags: hard interrupt 8, softirq 0x10
  int64_t time_ns = 0;
  std::string_view event;  // "sched_switch", "<stack trace>"
  std::string_view payload;
};

std::optional<FtraceLine> ParseFtraceLine(std::string_view line);

}  // namespace culprit::import_
