// SPDX-License-Identifier: Apache-2.0
#include "cluster/ngram_counts.h"

#include <algorithm>

namespace culprit::cluster {
namespace {

uint64_t PairKey(Symbol caller, Symbol callee) { return uint64_t{caller} << 32 | callee; }

uint64_t At(const std::vector<uint64_t>& counts, Symbol symbol) {
  return symbol < counts.size() ? counts[symbol] : 0;
}

void AddAll(const std::vector<uint64_t>& from, std::vector<uint64_t>& to) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

// 1 - part / whole, rounded down; 1 where nothing was counted.
Fixed Rest(uint64_t part, uint64_t whole) {
  if (whole == 0) return kOne;
  uint64_t rest = whole - std::min(part, whole);
  // Room for the shift; such counts have more digits than the result.
  while (whole >> (63 - kFixedBits) != 0) {
    whole >>= 1;
    rest >>= 1;
  }
  return static_cast<Fixed>((rest << kFixedBits) / whole);
}

}  // namespace

void NgramCounts::AddStack(std::span<const Symbol> stack, uint64_t times) {
  stacks_ += times;
  if (stack.empty()) return;
  const size_t symbols = size_t{*std::max_element(stack.begin(), stack.end())} + 1;
  if (with_.size() < symbols) {
    for (auto* counts : {&with_, &with_callee_, &with_caller_, &last_stack_}) {
      counts->resize(symbols);
    }
  }
  ++stack_number_;
  for (size_t i = 0; i < stack.size(); ++i) {
    const Symbol f = stack[i];
    if (last_stack_[f] != stack_number_) with_[f] += times;
    last_stack_[f] = stack_number_;
    if (i + 1 == stack.size()) break;
    const Symbol g = stack[i + 1];
    with_callee_[f] += times;
    with_caller_[g] += times;
    pairs_[PairKey(f, g)] += times;
  }
}

void NgramCounts::Add(const NgramCounts& other) {
  stacks_ += other.stacks_;
  AddAll(other.with_, with_);
  AddAll(other.with_callee_, with_callee_);
  AddAll(other.with_caller_, with_caller_);
  last_stack_.resize(with_.size());
  for (const auto& [pair, times] : other.pairs_) pairs_[pair] += times;
}

uint64_t NgramCounts::Pairs(Symbol f, Symbol g) const {
  const auto found = pairs_.find(PairKey(f, g));
  return found == pairs_.end() ? 0 : found->second;
}

Fixed NgramCounts::Uni(Symbol f) const { return Rest(At(with_, f), stacks_); }

Fixed NgramCounts::ForwardPair(Symbol f, Symbol g) const {
  return Rest(Pairs(f, g), At(with_callee_, f));
}

Fixed NgramCounts::BackwardPair(Symbol f, Symbol g) const {
  return Rest(Pairs(f, g), At(with_caller_, g));
}

}  // namespace culprit::cluster
