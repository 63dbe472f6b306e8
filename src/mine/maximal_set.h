// SPDX-License-Identifier: Apache-2.0
//
// MaximalSet: patterns of which none contains another. Branches of the search
// find their patterns apart, and among those are patterns that one of another
// branch contains; this filter takes them out, so that the answer does not
// depend on how the search was divided. Candidates come in batches; a batch
// must not hold a pattern that contains one of an earlier batch (the search's
// order of branches sees to that). Finding what contains a pattern looks only
// at the patterns that have its rarest item. Not for several threads at once,
// but they may all read it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/sequence_list.h"

namespace culprit::mine {

struct Candidates {
  SequenceList sequences;
  std::vector<int64_t> costs;
};

class MaximalSet {
 public:
  explicit MaximalSet(size_t item_count) : with_item_(item_count) {}

  void AddBatch(std::span<const Candidates> batch);

  // Whether one of the patterns contains it, or is it; not empty.
  bool Contains(std::span<const Item> sequence) const {
    return Contained(sequence, Signature(sequence));
  }

  size_t size() const { return patterns_.size(); }
  std::span<const Item> at(size_t i) const { return patterns_.at(i); }
  int64_t cost(size_t i) const { return costs_[i]; }
  // The patterns that hold an item, by number.
  std::span<const uint32_t> With(Item item) const { return with_item_[item]; }
  size_t Bytes() const { return 2 * patterns_.Bytes(); }

 private:
  bool Contained(std::span<const Item> sequence, uint64_t signature) const;

  SequenceList patterns_;
  std::vector<int64_t> costs_;
  std::vector<uint64_t> signatures_;  // a bit for each item, modulo 64
  std::vector<std::vector<uint32_t>> with_item_;
};

}  // namespace culprit::mine
