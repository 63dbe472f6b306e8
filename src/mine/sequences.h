// SPDX-License-Identifier: Apache-2.0
//
// WeightedSequences: a database of integer sequences, each with a cost, in one
// flat array. Over plain integers: what a symbol means is the caller's affair.
// Costs are non-negative; their sum fits int64_t. Passive data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/large_memory.h"

namespace culprit::mine {

using Symbol = uint32_t;

struct WeightedSequences {
  LargeVector<Symbol> symbols;
  LargeVector<uint64_t> ends;  // sequence i is symbols[ends[i-1] .. ends[i])
  LargeVector<int64_t> costs;

  size_t size() const { return costs.size(); }
  std::span<const Symbol> at(size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::span(symbols).subspan(begin, ends[i] - begin);
  }
  void Add(std::span<const Symbol> sequence, int64_t cost) {
    symbols.insert(symbols.end(), sequence.begin(), sequence.end());
    ends.push_back(symbols.size());
    costs.push_back(cost);
  }
};

}  // namespace culprit::mine
