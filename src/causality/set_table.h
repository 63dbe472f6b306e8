// SPDX-License-Identifier: Apache-2.0
//
// SetTable: every distinct set of small numbers once, as a dense SetId; id 0 is
// the empty set. Union, intersection and difference of two known sets are looked
// up after the first time. Sets of components along wait chains, and the
// signature sets of patterns, are few although they are asked for at every node.
//
// One thread at a time. A set costs its numbers, an operation on a new pair its
// merge and 16 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"

namespace culprit::causality {

using SetId = uint32_t;
inline constexpr SetId kEmptySet = 0;

class SetTable {
 public:
  SetTable();

  // `items` ascending, each once.
  SetId Intern(std::span<const uint32_t> items);
  // Ascending.
  std::span<const uint32_t> Items(SetId set) const {
    return {items_.data() + begins_[set], begins_[set + 1] - begins_[set]};
  }
  size_t size() const { return begins_.size() - 1; }
  bool Has(SetId set, uint32_t item) const;
  bool IsSubset(SetId part, SetId whole) const;

  SetId With(SetId set, uint32_t item);
  SetId Union(SetId a, SetId b);
  SetId Intersection(SetId a, SetId b);
  SetId Difference(SetId a, SetId b);

 private:
  enum class Operation : uint8_t { kUnion, kIntersection, kDifference };
  SetId Apply(Operation operation, SetId a, SetId b);
  SetId Find(Operation operation, SetId a, SetId b);
  void Grow();

  std::vector<uint32_t> items_;
  std::vector<size_t> begins_;
  std::vector<SetId> slots_;
  FlatMap<uint64_t, SetId> known_[3];
  // Most questions were asked a moment ago; by operation and a few bits of the sets.
  struct Answer {
    uint64_t key = UINT64_MAX;
    SetId set = kEmptySet;
  };
  std::array<std::array<Answer, 128>, 3> recent_;
  std::vector<uint32_t> scratch_;
};

}  // namespace culprit::causality
