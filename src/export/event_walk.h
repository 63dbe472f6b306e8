// SPDX-License-Identifier: Apache-2.0
//
// WalkEvents: every readable event of a trace, a block at a time and in time
// order within each block. A block that cannot be read is counted and skipped.
// Also how the fields of an event are named outside culprit, the same in every
// target: flags by name, the arguments by what they mean for the kind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "export/target.h"
#include "trace/syscall_operation.h"
#include "trace/trace_reader.h"

namespace culprit::export_ {

// Fails, before anything is written, if there are blocks and none is readable,
// or if the file broke off before its first block.
Status RequireReadable(const trace::TraceReader& reader);

// `visit` gets each block's events; an Error from it ends the walk.
Result<Summary> WalkEvents(const trace::TraceReader& reader, Progress* progress,
                           const std::function<Status(const std::vector<trace::Event>&)>& visit);

// "not_sampled", "preempted", ...: one name a set bit, by rising bit.
std::vector<std::string_view> FlagNames(uint8_t flags);
std::string_view Name(trace::ThreadKind kind);

// What arg0 and arg1 of a kind are; empty: nothing.
struct ArgumentNames {
  std::string_view arg0;
  std::string_view arg1;
};
ArgumentNames ArgumentNamesOf(trace::EventKind kind);
// arg0 as it is shown: of a system call its number alone.
inline int64_t FirstArgument(const trace::Event& event) {
  return event.kind == trace::EventKind::kSyscall ? trace::CallNumber(event.arg0) : event.arg0;
}
// A marker's name; empty for other kinds.
std::string_view MarkerName(const trace::Dictionary& dictionary, const trace::Event& event);

// Times and durations come from a file: their sums must not overflow.
inline int64_t AddSaturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? INT64_MIN : INT64_MAX;
}
inline int64_t EndOf(const trace::Event& event) {
  return AddSaturated(event.time_ns, event.dur_ns);
}

// Valid UTF-8 without NUL: names in traces are bytes, and readers of other
// formats stumble over what is not text.
std::string Utf8Text(std::string_view bytes);

}  // namespace culprit::export_
