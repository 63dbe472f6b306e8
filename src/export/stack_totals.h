// SPDX-License-Identifier: Apache-2.0
//
// SumByStack: the time of one kind of event by stack, or by thread and stack:
// what folded stacks, pprof and speedscope profiles are made of. Events
// without a stack have rows of their own, [not sampled] and [no stack], so the
// rows sum to the total of the kind. Memory is one row a distinct stack.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "export/event_walk.h"
#include "export/target.h"

namespace culprit::export_ {

// In place of a stack's id.
inline constexpr uint32_t kNotSampledStack = UINT32_MAX - 1;
inline constexpr uint32_t kNoStack = UINT32_MAX;
// "[not sampled]" or "[no stack]"; empty for the id of a stack.
std::string_view PseudoStackName(uint32_t stack);

struct StackTotal {
  trace::ThreadId thread;  // none() unless summed by thread
  uint32_t stack = kNoStack;
  uint64_t events = 0;
  int64_t time_ns = 0;
};

struct StackTotals {
  trace::EventKind kind = trace::EventKind::kWait;
  std::vector<StackTotal> rows;  // by thread, then stack
  Summary summary;

  // Unwaits and markers take no time: their value is how many there are.
  bool counts_events() const {
    return kind == trace::EventKind::kUnwait || kind == trace::EventKind::kMarker;
  }
  int64_t Value(const StackTotal& row) const {
    return counts_events() ? static_cast<int64_t>(row.events) : row.time_ns;
  }
};

// The kind is the options', else waits, or running code if there are none.
Result<StackTotals> SumByStack(const trace::TraceReader& reader, const Options& options,
                               bool by_thread);

}  // namespace culprit::export_
