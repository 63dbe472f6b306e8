// SPDX-License-Identifier: Apache-2.0
//
// EntryExitCalls: entries and exits of functions, as LTTng's instrumentation of user
// programs and probes of perf record them, to call events: from entry to exit, with
// the nested functions as the stack. An exit closes the innermost call of its function and
// all that were opened inside it; what is still open at the end is kUnfinished.
// Memory is the open calls, at most kMaxDepth a thread.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "assemble/assembler.h"
#include "base/diagnostics.h"
#include "base/result.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

struct EntryExitFact {
  int64_t time_ns = 0;
  uint64_t address = 0;  // 0: not recorded, of an exit: the innermost call's
  int64_t pid = assemble::kNoTid;
  int64_t tid = assemble::kNoTid;
  uint16_t cpu = assemble::kNoCpu;
  uint64_t offset = 0;  // in the input
};

class EntryExitCalls {
 public:
  static constexpr size_t kMaxDepth = 4096;
  // The stack of the function at the address, called from `caller`.
  using FunctionOn =
      std::function<trace::StackId(trace::StackId caller, int64_t pid, uint64_t address)>;

  // All outlive this object.
  EntryExitCalls(trace::TraceWriter& writer, assemble::Assembler& assembler, FunctionOn function_on,
                 Diagnostics& diagnostics)
      : writer_(writer),
        assembler_(assembler),
        function_on_(std::move(function_on)),
        diagnostics_(diagnostics) {}

  void Entry(const EntryExitFact& fact);
  Status Exit(const EntryExitFact& fact);
  Status Finish(int64_t end_ns);

 private:
  struct Call {
    int64_t time_ns = 0;
    uint64_t address = 0;
    trace::StackId stack;
    uint16_t cpu = assemble::kNoCpu;
  };
  struct Thread {
    trace::ThreadId id;
    std::vector<Call> open;
    uint64_t too_deep = 0;  // open calls that are not kept
  };

  Status Close(Thread& thread, int64_t end_ns, uint8_t flags);

  trace::TraceWriter& writer_;
  assemble::Assembler& assembler_;
  FunctionOn function_on_;
  Diagnostics& diagnostics_;
  std::unordered_map<int64_t, Thread> threads_;
};

}  // namespace culprit::import_
