// SPDX-License-Identifier: Apache-2.0
#include "record/function_calls.h"

#include <algorithm>

namespace culprit::record {

FunctionCalls::FunctionCalls(assemble::FusedAssembler& assembler, trace::Dictionary& dictionary,
                             int64_t begin_ns, IsRecorded is_recorded, Diagnostics& diagnostics)
    : assembler_(assembler),
      dictionary_(dictionary),
      begin_ns_(begin_ns),
      is_recorded_(std::move(is_recorded)),
      diagnostics_(diagnostics) {}

trace::FrameId FunctionCalls::FrameOf(const std::string& function) {
  const auto [it, is_new] = frames_.try_emplace(function);
  if (is_new) it->second = dictionary_.InternFrame("[jit]", function);
  return it->second;
}

Status FunctionCalls::Take(const FunctionHit& hit) {
  if (hit.time_ns < begin_ns_ || hit.tid <= 0) return {};
  Thread& thread = threads_[hit.tid];
  const trace::FrameId frame = FrameOf(hit.function);
  if (!hit.is_entry) return Leave(hit.tid, thread, frame, hit.time_ns);
  if (thread.open.size() >= kMaxDepth) {
    ++thread.too_deep;
    diagnostics_.Count("function call nested too deeply, ignored");
    return {};
  }
  const trace::StackId caller = thread.open.empty() ? trace::StackId() : thread.open.back().stack;
  thread.open.push_back(
      {.time_ns = hit.time_ns, .stack = dictionary_.InternStack(caller, frame), .frame = frame});
  return {};
}

Status FunctionCalls::Leave(int64_t tid, Thread& thread, trace::FrameId frame, int64_t time_ns) {
  if (thread.too_deep > 0) {
    --thread.too_deep;
    return {};
  }
  const auto found = std::find_if(thread.open.rbegin(), thread.open.rend(),
                                  [&](const Open& open) { return open.frame == frame; });
  if (found == thread.open.rend() && !thread.open.empty()) {
    diagnostics_.Count("function exit without its entry");
    return {};
  }
  if (found == thread.open.rend()) {
    // Its caller, if it is left later, was running for longer.
    thread.open.push_back(
        {.time_ns = begin_ns_, .stack = dictionary_.InternStack({}, frame), .frame = frame});
    return Close(tid, thread, time_ns, trace::kInferred);
  }
  const auto keep = static_cast<size_t>(thread.open.rend() - found);
  while (thread.open.size() > keep) {
    diagnostics_.Count("function entry without its exit");
    CULPRIT_TRY(Close(tid, thread, time_ns, 0));
  }
  return Close(tid, thread, time_ns, 0);
}

Status FunctionCalls::Close(int64_t tid, Thread& thread, int64_t end_ns, uint8_t flags) {
  const Open call = thread.open.back();
  thread.open.pop_back();
  if (!is_recorded_(tid)) return {};
  return assembler_.Call(call.time_ns, std::max(call.time_ns, end_ns), tid, call.stack, flags);
}

Status FunctionCalls::Finish(int64_t end_ns) {
  for (auto& [tid, thread] : threads_) {
    while (!thread.open.empty()) CULPRIT_TRY(Close(tid, thread, end_ns, trace::kUnfinished));
  }
  return {};
}

}  // namespace culprit::record
