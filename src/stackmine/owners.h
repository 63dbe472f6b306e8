// SPDX-License-Identifier: Apache-2.0
//
// Owners: for each distinct stack, the one cluster that tells most about it.
// Clusters overlap: a stack that contains a long, specific pattern contains many
// short, common ones too, and by cost alone the common ones come first. So the
// ranking looks at what a cluster owns: the stacks for which its patterns are
// the most informative ones. A cluster with an anchor tells more than one without,
// of several the one of the best anchor; otherwise frames that few stacks have
// are counted. Each stack has one owner or none; ties are settled by `order`.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/ngram_counts.h"
#include "stackmine/function_symbols.h"
#include "stackmine/stack_match.h"

namespace culprit::stackmine {

inline constexpr uint32_t kNoOwner = UINT32_MAX;

struct Owners {
  std::vector<uint32_t> wait;  // by stack: label
  std::vector<uint32_t> run;

  uint32_t of(StackKind kind, StackIndex stack) const {
    return kind == StackKind::kWait ? wait[stack] : run[stack];
  }
};

// `patterns` as they were matched. By label: `order` for ties (smaller first),
// `anchor_score` (0: no anchor).
Owners FindOwners(const Evidence& evidence, const StackLabels& labels,
                  const std::vector<LabelledPattern>& patterns, const std::vector<uint32_t>& order,
                  const std::vector<int64_t>& anchor_score, const FunctionSymbols& symbols,
                  const cluster::NgramCounts& counts, size_t jobs);

}  // namespace culprit::stackmine
