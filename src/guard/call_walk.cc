// SPDX-License-Identifier: Apache-2.0
#include "guard/call_walk.h"

#include <algorithm>

namespace culprit::guard {

uint32_t CallPaths::Intern(uint32_t caller, uint32_t function) {
  const auto [found, made] =
      index_.try_emplace({caller, function}, static_cast<uint32_t>(nodes_.size()));
  if (made) nodes_.push_back({caller, function});
  return found->second;
}

CallWalk::CallWalk(const SessionCode& code, const LogFile& log, std::span<const int64_t> moments,
                   CallPaths& paths)
    : code_(code),
      log_(log),
      moments_(moments),
      paths_(paths),
      ids_(code.FunctionIds(log.pid)),
      now_ns_(static_cast<int64_t>(log.begin_ns)) {}

Result<WalkedLog> CallWalk::Run(Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(LogCursor cursor, LogCursor::Open(log_, diagnostics));
  for (LogRecord record; cursor.Next(record);) Take(record);
  // What goes on at the end of the log goes on until the last moment.
  if (!moments_.empty()) now_ns_ = std::max(now_ns_, moments_.back() + 1);
  moment_ = static_cast<uint32_t>(moments_.size());
  while (!open_.empty()) Pop();
  if (too_deep_ > 0) diagnostics.Count("function entered at too great a depth", too_deep_);
  return std::move(walked_);
}

void CallWalk::Take(const LogRecord& record) {
  if (record.broken || record.kind == wire::LogKind::kThread) {
    while (!open_.empty()) Pop();
  }
  switch (record.kind) {
    case wire::LogKind::kTime:
      now_ns_ = static_cast<int64_t>(uint64_t{record.a} << 40 | record.b);
      walked_.first_ns = std::min(walked_.first_ns, now_ns_);
      while (moment_ < moments_.size() && moments_[moment_] < now_ns_) ++moment_;
      break;
    case wire::LogKind::kEnter:
      ++walked_.entries;
      ReturnTo(record.b, record.words[0]);
      if (record.a < ids_.size() && ids_[record.a] != kNoIndex) Push(ids_[record.a], record.b);
      break;
    case wire::LogKind::kPlace:
      ReturnTo(record.b, record.words[0]);
      break;
    case wire::LogKind::kOwnWork:
      walked_.own_work.push_back(
          {static_cast<int64_t>(record.words[0]), static_cast<int64_t>(record.words[1])});
      break;
    default:
      break;
  }
}

// A function makes room on the stack between two calls (variable arrays, pushed
// arguments), so what returned may lie above the next entry: the return address tells.
void CallWalk::ReturnTo(uint64_t sp16, uint64_t return_address) {
  while (!open_.empty() && open_.back().sp16 <= sp16) Pop();
  const uint32_t caller = CallerAt(return_address);
  if (caller == kNoIndex || (!open_.empty() && open_.back().function == caller)) return;
  const auto known = std::find_if(open_.rbegin(), open_.rend(),
                                  [&](const Open& open) { return open.function == caller; });
  if (known == open_.rend()) {
    Push(caller, sp16);
    return;
  }
  const auto depth = static_cast<size_t>(open_.rend() - known);
  while (open_.size() > depth) Pop();
}

void CallWalk::Push(uint32_t function, uint64_t sp16) {
  if (open_.size() >= kMaxDepth) {
    ++too_deep_;
    return;
  }
  open_.push_back(
      {.sp16 = sp16, .function = function, .first_moment = moment_, .begin_ns = now_ns_});
}

void CallWalk::Pop() {
  if (open_.back().first_moment < moment_) {
    const uint32_t path = PathOf(open_.size() - 1);
    const Open& open = open_.back();
    walked_.calls.push_back({.begin_ns = open.begin_ns,
                             .end_ns = now_ns_,
                             .path = path,
                             .first_moment = open.first_moment});
  }
  open_.pop_back();
}

// Most calls are gone before anybody asks for theirs.
uint32_t CallWalk::PathOf(size_t depth) {
  size_t known = depth + 1;
  while (known > 0 && open_[known - 1].path == kNoIndex) --known;
  uint32_t path = known == 0 ? kNoIndex : open_[known - 1].path;
  for (size_t i = known; i <= depth; ++i) {
    path = paths_.Intern(path, open_[i].function);
    open_[i].path = path;
  }
  return path;
}

uint32_t CallWalk::CallerAt(uint64_t return_address) {
  if (return_address == last_return_) return last_caller_;
  const auto [found, made] = callers_.try_emplace(return_address, kNoIndex);
  if (made) {
    CodeAddress place = code_.Resolve(log_.pid, return_address);
    if (place.offset > 0) --place.offset;  // the call, not what follows it
    if (place.module != kNoIndex) found->second = code_.FunctionAt(place);
  }
  last_return_ = return_address;
  last_caller_ = found->second;
  return last_caller_;
}

}  // namespace culprit::guard
