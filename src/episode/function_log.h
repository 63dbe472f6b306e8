// SPDX-License-Identifier: Apache-2.0
//
// FunctionLog: the function calls of a trace by thread id: what a tool that records
// functions but no system calls knows (uftrace, LTTng-UST). Together with a recording
// of the system calls of the same time, on the same clock, it says whose they are.
//
// Reading is one pass over the blocks that hold calls, in parallel; 24 bytes a call.
// Passive data afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "episode/syscall_log.h"
#include "trace/trace_reader.h"

namespace culprit::episode {

struct FunctionLog {
  std::map<int64_t, std::vector<Span>> threads;  // by tid; by time, callers before callees
  uint64_t calls = 0;
  Diagnostics diagnostics;
};

FunctionLog ReadFunctionLog(const trace::TraceReader& reader, size_t jobs);

// An Error if the times of the two traces cannot be compared.
Status CheckSameTime(const trace::TraceReader& functions, const trace::TraceReader& syscalls);

}  // namespace culprit::episode
