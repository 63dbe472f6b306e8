// SPDX-License-Identifier: Apache-2.0
//
// MineMasks: the sub-problem in which all views agree on one order of items.
// Sequences are then sets and sets are bits: weighted maximal item-set mining
// in the manner of FPmax, with closure jumps, merging of equal sets, head+tail
// look-ahead and known patterns to cut by. Adds to `found` frequent sequences
// of ranked items, ascending by rank, among them every maximal one that is not
// contained in a sequence of `known`; the empty one stands for the pattern
// whose conditional data this is. At most kMostMaskItems ranked items.
#pragma once

#include <cstdint>

#include "mine/budget.h"
#include "mine/item_order.h"
#include "mine/sequence_list.h"
#include "mine/views.h"

namespace culprit::mine {

inline constexpr uint32_t kMostMaskItems = 2048;

void MineMasks(const Views& data, const ItemOrder& order, const SequenceList& known, int64_t lambda,
               Allowance& allowance, SequenceList& found);

}  // namespace culprit::mine
