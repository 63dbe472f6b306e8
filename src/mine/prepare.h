// SPDX-License-Identifier: Apache-2.0
//
// Prepare: the input as the miners see it. Symbols below lambda are gone, chains
// of symbols that always stand together are one item, items are numbered by
// cost, least costly first (ties by symbols), equal sequences are one. Exact: a
// maximal pattern never holds a symbol below lambda, and holds such a chain
// whole or not at all. Three passes over the input in its order.
//
// A Piece of the search is a stretch of items: the branches of these items alone,
// so only the sequences that hold one of them, without the items before. Pieces
// are cut such that the branches of each have about the same to read; where, follows
// from the sequences, lambda and the number of pieces. A fourth pass.
#pragma once

#include <cstdint>

#include "mine/sequence_list.h"
#include "mine/sequence_queue.h"
#include "mine/sequences.h"

namespace culprit::mine {

struct Piece {
  uint64_t index = 0;  // below `count`
  uint64_t count = 1;
};

struct Prepared {
  SequenceQueue queue;
  SequenceList chains;  // item: the symbols it stands for
  ItemRange items;      // those of the piece
};

Prepared Prepare(const WeightedSequences& input, int64_t lambda, size_t jobs,
                 const Piece& piece = {});

}  // namespace culprit::mine
