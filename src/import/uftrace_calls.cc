// SPDX-License-Identifier: Apache-2.0
#include "import/uftrace_calls.h"

#include <algorithm>

namespace culprit::import_ {

Status UftraceCalls::Close(int64_t end_ns, uint8_t flags) {
  const Call call = open_.back();
  open_.pop_back();
  return writer_.Add({.time_ns = call.time_ns,
                      .dur_ns = std::max<int64_t>(end_ns - call.time_ns, 0),
                      .thread = thread_,
                      .stack = call.stack,
                      .kind = trace::EventKind::kCall,
                      .flags = flags});
}

Status UftraceCalls::Entry(const UftraceRecord& record, trace::FrameId function) {
  while (!open_.empty() && open_.back().depth >= record.depth) {
    diagnostics_.Count("function entry without its exit", 1, record.offset);
    CULPRIT_TRY(Close(record.time_ns, 0));
  }
  trace::Dictionary& dictionary = writer_.dictionary();
  trace::StackId caller = stack();
  if (open_.empty() && record.depth > 0) {
    caller = dictionary.InternStack({}, dictionary.InternFrame("", trace::kTruncatedFunction));
  }
  open_.push_back({.time_ns = record.time_ns,
                   .address = record.address,
                   .stack = dictionary.InternStack(caller, function),
                   .depth = record.depth});
  return {};
}

Status UftraceCalls::Exit(const UftraceRecord& record) {
  const auto is_its_entry = [&](const Call& call) {
    return call.depth == record.depth && call.address == record.address;
  };
  const auto found = std::find_if(open_.rbegin(), open_.rend(), is_its_entry);
  if (found == open_.rend()) {
    diagnostics_.Count("function exit without its entry", 1, record.offset);
    return {};
  }
  const auto keep = static_cast<size_t>(open_.rend() - found);
  while (open_.size() > keep) {
    diagnostics_.Count("function entry without its exit", 1, record.offset);
    CULPRIT_TRY(Close(record.time_ns, 0));
  }
  return Close(record.time_ns, 0);
}

Status UftraceCalls::Finish(int64_t end_ns) {
  while (!open_.empty()) CULPRIT_TRY(Close(end_ns, trace::kUnfinished));
  return {};
}

}  // namespace culprit::import_
