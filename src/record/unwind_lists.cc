// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_lists.h"

#include <iterator>
#include <utility>

namespace culprit::record {

std::optional<uint32_t> UnwindRoom::Take(uint32_t count, int64_t now_ns) {
  while (!returned_.empty() && now_ns - returned_.front().time_ns >= kGraceNs) {
    Free(returned_.front().first, returned_.front().count);
    returned_.pop_front();
  }
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [first, room] = *it;
    if (room < count) continue;
    free_.erase(it);
    if (room > count) free_[first + count] = room - count;
    return first;
  }
  return std::nullopt;
}

void UnwindRoom::GiveBack(uint32_t first, uint32_t count, int64_t now_ns) {
  if (count > 0) returned_.push_back({first, count, now_ns});
}

void UnwindRoom::Free(uint32_t first, uint32_t count) {
  auto it = free_.emplace(first, count).first;
  if (const auto next = std::next(it); next != free_.end() && first + count == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  const auto before = std::prev(it);
  if (before->first + before->second != first) return;
  before->second += it->second;
  free_.erase(it);
}

void UnwindLists::Replace(int64_t pid, std::shared_ptr<UnwindList> list, int64_t now_ns) {
  std::shared_ptr<UnwindList> old = std::exchange(lists_[pid], std::move(list));
  if (lists_[pid] == nullptr) lists_.erase(pid);
  if (old.use_count() == 1) {
    room_.GiveBack(old->first, static_cast<uint32_t>(old->ranges.size()), now_ns);
  }
}

const UnwindList* UnwindLists::Set(int64_t pid, std::vector<UnwindRange> ranges, int64_t now_ns) {
  const std::optional<uint32_t> first = room_.Take(static_cast<uint32_t>(ranges.size()), now_ns);
  if (!first) {
    Forget(pid, now_ns);
    return nullptr;
  }
  auto list = std::make_shared<UnwindList>(UnwindList{*first, ++versions_, std::move(ranges)});
  Replace(pid, list, now_ns);
  return list.get();
}

const UnwindList* UnwindLists::Share(int64_t parent_pid, int64_t pid, int64_t now_ns) {
  const auto parent = lists_.find(parent_pid);
  if (parent == lists_.end()) {
    Forget(pid, now_ns);
    return nullptr;
  }
  Replace(pid, parent->second, now_ns);
  return Find(pid);
}

void UnwindLists::Forget(int64_t pid, int64_t now_ns) {
  if (lists_.contains(pid)) Replace(pid, nullptr, now_ns);
}

const UnwindList* UnwindLists::Find(int64_t pid) const {
  const auto it = lists_.find(pid);
  return it == lists_.end() ? nullptr : it->second.get();
}

}  // namespace culprit::record
