// SPDX-License-Identifier: Apache-2.0
//
// UnwindLists: which process has which ranges where in the kernel's array of ranges.
// A list never changes: a process gets another one, and the room of the old one is
// used again only after a while, when nobody can be walking by it any more.
// Processes share a list after a fork, and when their ranges are the same: what is
// remembered of one of them is then good for all. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "record/bpf/unwind_layout.h"

namespace culprit::record {

// Room in an array of kUnwindRanges entries.
class UnwindRoom {
 public:
  static constexpr int64_t kGraceNs = 1'000'000'000;

  explicit UnwindRoom(uint32_t entries = kUnwindRanges) { free_[0] = entries; }

  std::optional<uint32_t> Take(uint32_t count, int64_t now_ns);
  void GiveBack(uint32_t first, uint32_t count, int64_t now_ns);

 private:
  struct Returned {
    uint32_t first = 0;
    uint32_t count = 0;
    int64_t time_ns = 0;
  };
  void Free(uint32_t first, uint32_t count);

  std::map<uint32_t, uint32_t> free_;  // first to count
  std::deque<Returned> returned_;
};

struct UnwindList {
  uint32_t first = 0;
  uint32_t version = 0;  // no other list has had it
  uint64_t hash = 0;
  std::vector<UnwindRange> ranges;
};

class UnwindLists {
 public:
  // Another list for a process; null if there is no room. `is_new`: nobody else has it, and
  // the array does not hold it yet.
  const UnwindList* Set(int64_t pid, std::vector<UnwindRange> ranges, int64_t now_ns, bool& is_new);
  // The child has what its parent has; null if that has none.
  const UnwindList* Share(int64_t parent_pid, int64_t pid, int64_t now_ns);
  void Forget(int64_t pid, int64_t now_ns);

  const UnwindList* Find(int64_t pid) const;
  size_t size() const { return lists_.size(); }

 private:
  void Replace(int64_t pid, std::shared_ptr<UnwindList> list, int64_t now_ns);
  std::shared_ptr<UnwindList> FindSame(const std::vector<UnwindRange>& ranges) const;

  UnwindRoom room_;
  uint32_t versions_ = 0;
  std::map<int64_t, std::shared_ptr<UnwindList>> lists_;  // by process
  // By hash of their ranges; those that somebody has.
  std::multimap<uint64_t, std::weak_ptr<UnwindList>> same_;
};

}  // namespace culprit::record
