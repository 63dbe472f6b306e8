// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_lists.h"

#include <iterator>
#include <utility>

namespace culprit::record {
namespace {

uint64_t HashOf(const std::vector<UnwindRange>& ranges) {
  uint64_t hash = ranges.size();
  for (const UnwindRange& range : ranges) {
    for (const uint64_t word :
         {range.start, range.end, uint64_t{range.index} << 32 | range.chunk}) {
      hash = (hash ^ word) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 32;
    }
  }
  return hash;
}

}  // namespace

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
  if (old.use_count() != 1) return;
  room_.GiveBack(old->first, static_cast<uint32_t>(old->ranges.size()), now_ns);
  const auto [first, last] = same_.equal_range(old->hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.lock() != old) continue;
    same_.erase(it);
    break;
  }
}

std::shared_ptr<UnwindList> UnwindLists::FindSame(const std::vector<UnwindRange>& ranges) const {
  const auto [first, last] = same_.equal_range(HashOf(ranges));
  for (auto it = first; it != last; ++it) {
    std::shared_ptr<UnwindList> list = it->second.lock();
    if (list != nullptr && list->ranges == ranges) return list;
  }
  return nullptr;
}

const UnwindList* UnwindLists::Set(int64_t pid, std::vector<UnwindRange> ranges, int64_t now_ns,
                                   bool& is_new) {
  is_new = false;
  if (std::shared_ptr<UnwindList> same = FindSame(ranges)) {
    Replace(pid, std::move(same), now_ns);
    return Find(pid);
  }
  const std::optional<uint32_t> first = room_.Take(static_cast<uint32_t>(ranges.size()), now_ns);
  if (!first) {
    Forget(pid, now_ns);
    return nullptr;
  }
  const uint64_t hash = HashOf(ranges);
  auto list =
      std::make_shared<UnwindList>(UnwindList{*first, ++versions_, hash, std::move(ranges)});
  is_new = true;
  same_.emplace(hash, list);
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
