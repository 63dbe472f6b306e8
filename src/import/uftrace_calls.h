// SPDX-License-Identifier: Apache-2.0
//
// UftraceCalls: entries and exits of functions to call events: from entry to
// exit, with the functions around it as the stack. A record says how deep it is
// nested; an entry ends the calls that are not above it (longjmp, exec and lost
// records leave such behind), an exit ends the call of its function at its
// depth. A task that is first seen inside a function has [truncated] as its
// outermost caller. What is open at the end is kUnfinished. Memory is the open
// calls: at most 1,024 a task. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/uftrace_records.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

class UftraceCalls {
 public:
  // Both outlive this object.
  UftraceCalls(trace::ThreadId thread, trace::TraceWriter& writer, Diagnostics& diagnostics)
      : thread_(thread), writer_(writer), diagnostics_(diagnostics) {}

  Status Entry(const UftraceRecord& record, trace::FrameId function);
  Status Exit(const UftraceRecord& record);
  Status Finish(int64_t end_ns);
  // What the task is in now; none: in no recorded function.
  trace::StackId stack() const { return open_.empty() ? trace::StackId() : open_.back().stack; }

 private:
  struct Call {
    int64_t time_ns = 0;
    uint64_t address = 0;
    trace::StackId stack;
    uint16_t depth = 0;
  };

  Status Close(int64_t end_ns, uint8_t flags);

  const trace::ThreadId thread_;
  trace::TraceWriter& writer_;
  Diagnostics& diagnostics_;
  std::vector<Call> open_;
};

}  // namespace culprit::import_
