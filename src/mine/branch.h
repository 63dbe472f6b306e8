// SPDX-License-Identifier: Apache-2.0
//
// MineBranch: all maximal patterns whose least costly item is a given one, from
// the sequences that hold it. The unit of parallel work: reads what is shared,
// returns candidates of its own with their exact costs.
#pragma once

#include <cstdint>

#include "mine/budget.h"
#include "mine/maximal_set.h"
#include "mine/sequence_queue.h"

namespace culprit::mine {

struct BranchInput {
  const Batch& batch;
  Item item;  // of the batch; no pattern of the branch holds a lesser one
  size_t item_count;
};

Candidates MineBranch(const BranchInput& input, const MaximalSet& known, int64_t lambda,
                      Allowance& allowance);

}  // namespace culprit::mine
