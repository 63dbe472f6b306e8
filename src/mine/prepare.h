// SPDX-License-Identifier: Apache-2.0
//
// Prepare: the input as the miners see it. Symbols below lambda are gone, chains
// of symbols that always stand together are one item, items are numbered by
// cost, least costly first (ties by symbols), equal sequences are one. Exact: a
// maximal pattern never holds a symbol below lambda, and holds such a chain
// whole or not at all. Three passes over the input in its order.
#pragma once

#include <cstdint>

#include "mine/sequence_list.h"
#include "mine/sequence_queue.h"
#include "mine/sequences.h"

namespace culprit::mine {

struct Prepared {
  SequenceQueue queue;
  SequenceList chains;  // item: the symbols it stands for
};

Prepared Prepare(const WeightedSequences& input, int64_t lambda, size_t jobs);

}  // namespace culprit::mine
