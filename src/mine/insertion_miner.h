// SPDX-License-Identifier: Apache-2.0
//
// InsertionMiner: grows a pattern by inserting items anywhere, the least costly
// first, over conditional data (views.h). While views disagree on the order of
// items it branches on the items in the way (item_order.h); the rest is set
// mining (mask_miner.h). Fast on stacks as they mostly are. Data in which items
// repeat many times has more views than is good: then it gives up, having found
// some patterns, and the prefix miner takes over. Whether it does depends on
// the data alone. Used by one thread.
#pragma once

#include <cstdint>

#include "mine/budget.h"
#include "mine/sequence_list.h"
#include "mine/views.h"

namespace culprit::mine {

class InsertionMiner {
 public:
  InsertionMiner(int64_t lambda, Allowance& allowance) : lambda_(lambda), allowance_(allowance) {}

  // Adds to `found` frequent sequences of items, among them every maximal one
  // not contained in one of `known`; the empty one stands for the pattern whose
  // conditional data this is. False: it gave up, and some may be missing.
  bool Mine(const Views& data, const SequenceList& known, SequenceList& found);

 private:
  void Grow(const Views& data, SequenceList& known, size_t depth, SequenceList& found);
  void GrowWith(const Views& data, Item chosen, std::span<const uint8_t> left_out,
                const SequenceList& known, size_t depth, SequenceList& found);
  bool TooMuch(size_t depth, size_t items);

  int64_t lambda_;
  Allowance& allowance_;
  size_t most_items_ = 0;
  size_t work_ = 0;
  size_t most_work_ = 0;
  bool gave_up_ = false;
};

}  // namespace culprit::mine
