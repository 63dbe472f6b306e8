// SPDX-License-Identifier: Apache-2.0
//
// Search: walks the items of a database from the least costly on, a batch at a
// time, and mines the branch of each (branch.h). When an item's patterns are found
// it is never needed again and leaves the data. Of a piece of the search (prepare.h)
// only the branches of its items are mined; what they hold is maximal among them.
// One thread calls it; it uses `jobs`.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/budget.h"
#include "mine/maximal.h"
#include "mine/maximal_set.h"
#include "mine/prepare.h"

namespace culprit::mine {

class Search {
 public:
  Search(const WeightedSequences& sequences, int64_t lambda, size_t jobs, Budget& budget,
         const Piece& piece = {});

  void Run();
  // In canonical order.
  std::vector<Pattern> Patterns() const;

 private:
  void RunBatch(const Batch& batch);

  size_t jobs_;
  int64_t lambda_;
  Budget& budget_;
  Prepared prepared_;
  MaximalSet patterns_;
  MemoryClaim memory_;
};

// Costliest first, then lexicographically by symbols.
void SortCanonically(std::vector<Pattern>& patterns);

}  // namespace culprit::mine
