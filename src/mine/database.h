// SPDX-License-Identifier: Apache-2.0
//
// Database: the sequences as the miners see them. Made once: symbols below
// lambda are gone, chains of symbols that always stand together are one item,
// items are numbered by cost, least costly first (ties by symbols), equal
// sequences are one, and so are the sequences in an order given by content: two
// inputs that differ in order alone give the same database. Exact: a maximal
// pattern never holds a symbol below lambda, and holds such a chain whole or
// not at all. Read-only once made, so shared by threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/sequence_list.h"
#include "mine/sequences.h"

namespace culprit::mine {

struct Database {
  SequenceList sequences;
  std::vector<int64_t> costs;  // of the sequences

  size_t size() const { return costs.size(); }
  size_t Bytes() const { return sequences.Bytes() + costs.size() * sizeof(int64_t); }
};

struct PreparedDatabase {
  Database database;
  SequenceList chains;  // item: the symbols it stands for
};

PreparedDatabase Prepare(const WeightedSequences& input, int64_t lambda, size_t jobs);

// The database without the items below `first`, equal sequences merged.
Database WithoutItemsBelow(const Database& database, Item first, size_t jobs);

}  // namespace culprit::mine
