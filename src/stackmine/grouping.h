// SPDX-License-Identifier: Apache-2.0
//
// GroupPatterns: from mined patterns to clusters without metrics. Patterns of a
// kind are grouped by similarity (StackMine §VI), groups whose patterns all have
// the same best anchor are joined (anchors.h), and of each group the common and
// the variant parts and the id are worked out. Labels are places in the result.
#pragma once

#include <vector>

#include "cluster/ngram_counts.h"
#include "stackmine/clusters.h"
#include "stackmine/function_symbols.h"
#include "stackmine/patterns.h"

namespace culprit::stackmine {

std::vector<Cluster> GroupPatterns(const Evidence& evidence, const StackCosts& costs,
                                   const MinedPatterns& mined, const FunctionSymbols& symbols,
                                   const cluster::NgramCounts& counts, const MineOptions& options);

}  // namespace culprit::stackmine
