// SPDX-License-Identifier: Apache-2.0
#include "import/entry_exit_calls.h"

#include <algorithm>

namespace culprit::import_ {

void EntryExitCalls::Entry(const EntryExitFact& fact) {
  Thread& thread = threads_[fact.tid];
  if (!thread.id.valid()) thread.id = assembler_.ThreadOf(fact.tid);
  if (thread.open.size() >= kMaxDepth) {
    diagnostics_.Count("function call nested too deeply, ignored", 1, fact.offset);
    ++thread.too_deep;
    return;
  }
  const trace::StackId caller = thread.open.empty() ? trace::StackId() : thread.open.back().stack;
  thread.open.push_back({.time_ns = fact.time_ns,
                         .address = fact.address,
                         .stack = function_on_(caller, fact.pid, fact.address),
                         .cpu = fact.cpu});
}

Status EntryExitCalls::Close(Thread& thread, int64_t end_ns, uint8_t flags) {
  const Call call = thread.open.back();
  thread.open.pop_back();
  return writer_.Add({.time_ns = call.time_ns,
                      .dur_ns = std::max<int64_t>(end_ns - call.time_ns, 0),
                      .thread = thread.id,
                      .stack = call.stack,
                      .cpu = call.cpu,
                      .kind = trace::EventKind::kCall,
                      .flags = flags});
}

Status EntryExitCalls::Exit(const EntryExitFact& fact) {
  const auto found = threads_.find(fact.tid);
  if (found != threads_.end() && found->second.too_deep > 0) {
    --found->second.too_deep;
    return {};
  }
  size_t depth = found == threads_.end() ? 0 : found->second.open.size();
  while (fact.address != 0 && depth > 0 && found->second.open[depth - 1].address != fact.address) {
    --depth;
  }
  if (depth == 0) {
    diagnostics_.Count("function exit without its entry", 1, fact.offset);
    return {};
  }
  Thread& thread = found->second;
  while (thread.open.size() > depth) {
    diagnostics_.Count("function entry without its exit", 1, fact.offset);
    CULPRIT_TRY(Close(thread, fact.time_ns, 0));
  }
  return Close(thread, fact.time_ns, 0);
}

Status EntryExitCalls::Finish(int64_t end_ns) {
  std::vector<int64_t> tids;
  for (const auto& [tid, thread] : threads_) tids.push_back(tid);
  std::sort(tids.begin(), tids.end());
  for (const int64_t tid : tids) {
    Thread& thread = threads_[tid];
    while (!thread.open.empty()) CULPRIT_TRY(Close(thread, end_ns, trace::kUnfinished));
  }
  return {};
}

}  // namespace culprit::import_
