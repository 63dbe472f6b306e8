// SPDX-License-Identifier: Apache-2.0
//
// MineMaximal: the maximal costly subsequences of a database (StackMine §V).
// A pattern is a not necessarily contiguous subsequence; its cost is the sum of
// the costs of the sequences that contain it, each counted once. The result is
// exactly the patterns P with Cost(P) >= lambda such that no proper
// super-sequence of P reaches lambda, in canonical order: costliest first, then
// lexicographically by symbols. It does not depend on the number of threads or
// on the order of the input.
//
// Sequences that are empty or cost nothing change nothing. docs/mining.md has the
// algorithm and why it is exact. Typically linear in the input; the number of
// maximal patterns, and so the work, can be exponential when symbols repeat in
// many orders: hence the budgets.
//
// When a budget is spent the answer is truncated: what it holds are patterns
// that reach lambda and of which none contains another, but some may be missing
// or not maximal; `why` says which budget it was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mine/sequences.h"

namespace culprit::mine {

struct Pattern {
  std::vector<Symbol> symbols;
  int64_t cost = 0;

  bool operator==(const Pattern&) const = default;
};

struct MaximalOptions {
  int64_t lambda = 1;             // below 1 it is taken as 1: what costs nothing is no pattern
  size_t jobs = 0;                // threads; 0: all hardware threads
  uint64_t max_patterns = 0;      // 0: no bound
  int64_t max_time_ns = 0;        // 0: no bound; of wall time, so a truncated answer may vary
  uint64_t max_memory_bytes = 0;  // 0: no bound
};

struct MaximalResult {
  std::vector<Pattern> patterns;
  bool truncated = false;
  std::string why = {};  // of the truncation
};

MaximalResult MineMaximal(const WeightedSequences& sequences, const MaximalOptions& options);

// The largest lambda in [1, total cost] for which there are at least `patterns`
// patterns, found by bisection over MineMaximal; 1 if there never are as many.
// The number of maximal patterns is not monotonic in lambda: the result is the
// point at which the bisection, always the same one, ends. A budget of time or
// memory holds for each step; a step that spends it counts as enough patterns.
int64_t LambdaForTop(const WeightedSequences& sequences, uint64_t patterns,
                     const MaximalOptions& options);

}  // namespace culprit::mine
