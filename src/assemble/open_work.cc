// SPDX-License-Identifier: Apache-2.0
#include "assemble/open_work.h"

#include <utility>

#include "trace/syscall_operation.h"

namespace culprit::assemble {

using trace::EventKind;

namespace {

constexpr int64_t kFlush = 2;

// A flush has no place on the disk; what stands in its sector when it is issued
// and when it completes differs.
uint64_t SectorOf(const BlockFact& fact) {
  return fact.operation == kFlush ? UINT64_MAX : fact.sector;
}

}  // namespace

void OpenWork::SyscallEnter(LiveThread& thread, const OpenSyscall& call) {
  if (thread.syscall) sink_.Count(Oddity::kLostExit);
  thread.active = true;
  thread.syscall = call;
}

void OpenWork::SyscallExit(LiveThread& thread, int64_t time_ns, int64_t number, int64_t result) {
  if (!thread.syscall) {
    sink_.Count(Oddity::kLostEnter);
    return;
  }
  const OpenSyscall call = *std::exchange(thread.syscall, std::nullopt);
  // Only at its begin a call is known with its operation.
  const int64_t begun = trace::CallNumber(call.number);
  if (number >= 0 && begun >= 0 && number != begun) {
    sink_.Count(Oddity::kLostExit);
    sink_.Count(Oddity::kLostEnter);
    return;
  }
  sink_.Emit({.time_ns = call.time_ns,
              .dur_ns = time_ns - call.time_ns,
              .thread = thread.id,
              .stack = call.stack,
              .cpu = call.cpu,
              .kind = EventKind::kSyscall,
              .arg0 = begun >= 0 ? call.number : number,
              .arg1 = result});
}

void OpenWork::EmitRequest(const BlockKey& key, const Request& request, int64_t end_ns,
                           uint8_t flags) {
  sink_.Emit({.time_ns = request.time_ns,
              .dur_ns = end_ns - request.time_ns,
              .thread = threads_.Device("disk " + key.first),
              .peer = request.requester,
              .stack = request.stack,
              .kind = EventKind::kHardware,
              .flags = flags,
              .arg0 = request.bytes,
              .arg1 = request.operation});
}

void OpenWork::BlockIssue(const BlockFact& fact) {
  const BlockKey key = {std::string(fact.device), SectorOf(fact)};
  if (requests_.size() >= kMaxBlockRequests && !requests_.contains(key)) {
    sink_.Count(Oddity::kLostComplete);
    return;
  }
  Request request = {.time_ns = fact.time_ns,
                     .bytes = fact.bytes,
                     .operation = fact.operation,
                     .requester = {},
                     .stack = fact.stack};
  if (fact.tid > 0) {
    LiveThread& requester = threads_.Get(fact.tid);
    requester.active = true;
    request.requester = requester.id;
  }
  const auto [it, is_new] = requests_.insert_or_assign(key, request);
  if (!is_new) sink_.Count(Oddity::kLostComplete);
}

void OpenWork::BlockComplete(const BlockFact& fact) {
  const auto it = requests_.find({std::string(fact.device), SectorOf(fact)});
  if (it == requests_.end()) {
    // A completion of nothing ends the sequence around a flush; it had no issue.
    if (fact.bytes != 0 || fact.operation == kFlush) sink_.Count(Oddity::kLostIssue);
    return;
  }
  EmitRequest(it->first, it->second, fact.time_ns, 0);
  requests_.erase(it);
}

void OpenWork::CloseBlocks(int64_t time_ns) {
  for (const auto& [key, request] : requests_) {
    EmitRequest(key, request, time_ns, trace::kUnfinished);
  }
  requests_.clear();
}

void OpenWork::EmitMarker(const LiveThread& thread, int64_t time_ns, StringId name, size_t depth,
                          uint8_t flags) {
  sink_.Emit({.time_ns = time_ns,
              .thread = thread.id,
              .kind = EventKind::kMarker,
              .flags = flags,
              .arg0 = name.value,
              .arg1 = static_cast<int64_t>(depth)});
}

void OpenWork::SliceBegin(LiveThread& thread, int64_t time_ns, std::string_view name) {
  if (thread.slices.size() >= kMaxSliceDepth) {
    sink_.Count(Oddity::kDeepSlice);
    ++thread.skipped_slices;
    return;
  }
  thread.active = true;
  const StringId id = sink_.dictionary().Intern(name);
  EmitMarker(thread, time_ns, id, thread.slices.size(), trace::kBegin);
  thread.slices.push_back({.time_ns = time_ns, .name = id});
}

void OpenWork::PopSlice(LiveThread& thread, int64_t time_ns) {
  const OpenSlice slice = thread.slices.back();
  thread.slices.pop_back();
  EmitMarker(thread, time_ns, slice.name, thread.slices.size(), trace::kEnd);
  if (!thread.slices.empty()) return;
  sink_.target().AddInstance(
      {.scenario = slice.name, .thread = thread.id, .t0_ns = slice.time_ns, .t1_ns = time_ns});
}

void OpenWork::SliceEnd(LiveThread& thread, int64_t time_ns, std::string_view name) {
  if (thread.skipped_slices > 0) {
    --thread.skipped_slices;
    return;
  }
  size_t open = thread.slices.size();
  if (!name.empty()) {
    while (open > 0 && sink_.dictionary().Text(thread.slices[open - 1].name) != name) --open;
  }
  if (open == 0) {
    sink_.Count(Oddity::kLostBegin);
    return;
  }
  // Ends of inner slices were lost: they end with the outer one.
  while (thread.slices.size() >= open) PopSlice(thread, time_ns);
}

void OpenWork::Close(LiveThread& thread, int64_t time_ns) {
  if (thread.syscall) {
    const OpenSyscall call = *std::exchange(thread.syscall, std::nullopt);
    sink_.Emit({.time_ns = call.time_ns,
                .dur_ns = time_ns - call.time_ns,
                .thread = thread.id,
                .stack = call.stack,
                .cpu = call.cpu,
                .kind = EventKind::kSyscall,
                .flags = trace::kUnfinished,
                .arg0 = call.number});
  }
  thread.skipped_slices = 0;
  while (!thread.slices.empty()) PopSlice(thread, time_ns);
}

}  // namespace culprit::assemble
