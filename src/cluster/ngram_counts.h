// SPDX-License-Identifier: Apache-2.0
//
// NgramCounts: how often frames and caller-callee pairs occur in the stacks of
// a whole corpus, not only the area of interest. Plain sums, so counts of
// several traces add up in any order. From them the weights of StackMine §VI:
//
//   Uni(f)   = 1 - stacks with f / all stacks
//   FBi(f,g) = 1 - n(f calls g) / n(f with a callee)
//   BBi(f,g) = 1 - n(f calls g) / n(g with a caller)
//
// A pair the corpus never saw has n = 0; 0/0 counts as 0. Not thread safe while
// counting. Memory: 32 bytes a symbol and a map entry a distinct pair.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/symbol_words.h"

namespace culprit::cluster {

class NgramCounts {
 public:
  // A stack, caller first, that occurred `times` times. A symbol that stands in
  // it more than once counts once for Uni, each adjacency counts for pairs.
  void AddStack(std::span<const Symbol> stack, uint64_t times);
  void Add(const NgramCounts& other);

  Fixed Uni(Symbol f) const;
  Fixed ForwardPair(Symbol f, Symbol g) const;   // FBi
  Fixed BackwardPair(Symbol f, Symbol g) const;  // BBi
  uint64_t stacks() const { return stacks_; }

 private:
  uint64_t Pairs(Symbol f, Symbol g) const;

  uint64_t stacks_ = 0;
  std::vector<uint64_t> with_;         // stacks with the symbol
  std::vector<uint64_t> with_callee_;  // its occurrences that call something
  std::vector<uint64_t> with_caller_;
  // The number of the last stack added that had the symbol.
  std::vector<uint64_t> last_stack_;
  uint64_t stack_number_ = 0;
  std::unordered_map<uint64_t, uint64_t> pairs_;  // caller << 32 | callee
};

}  // namespace culprit::cluster
