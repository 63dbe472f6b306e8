// SPDX-License-Identifier: Apache-2.0
//
// SequenceList: many short sequences of items in one flat array, and the one
// question asked of them everywhere: is one a subsequence of another. An item
// is what the miners count with; every stage numbers its own from 0, and says
// what its numbers stand for. Passive data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace culprit::mine {

using Item = uint32_t;
inline constexpr Item kDropped = std::numeric_limits<Item>::max();  // what renaming leaves out

struct ItemRange {
  Item first = 0;
  Item end = 0;
};

// A bit for each item, modulo 64: what is not in a whole's is not in the whole.
inline uint64_t Signature(std::span<const Item> sequence) {
  uint64_t signature = 0;
  for (const Item item : sequence) signature |= uint64_t{1} << (item % 64);
  return signature;
}

// Not necessarily contiguous; the empty sequence is contained in all.
inline bool IsSubsequence(std::span<const Item> part, std::span<const Item> whole) {
  if (part.size() > whole.size()) return false;
  size_t matched = 0;
  for (const Item item : whole) {
    if (matched == part.size()) return true;
    if (part[matched] == item) ++matched;
  }
  return matched == part.size();
}

struct SequenceList {
  std::vector<Item> items;
  std::vector<size_t> begins = {0};  // sequence i is items[begins[i] .. begins[i + 1])

  size_t size() const { return begins.size() - 1; }
  bool empty() const { return size() == 0; }
  std::span<const Item> at(size_t i) const {
    return std::span(items).subspan(begins[i], begins[i + 1] - begins[i]);
  }
  void Add(std::span<const Item> sequence) {
    items.insert(items.end(), sequence.begin(), sequence.end());
    End();
  }
  // Ends the sequence whose items were pushed one by one.
  void End() { begins.push_back(items.size()); }
  void Clear() {
    items.clear();
    begins.assign(1, 0);
  }
  size_t Bytes() const { return items.size() * sizeof(Item) + begins.size() * sizeof(size_t); }
};

}  // namespace culprit::mine
