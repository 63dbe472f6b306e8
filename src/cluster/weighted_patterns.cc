// SPDX-License-Identifier: Apache-2.0
#include "cluster/weighted_patterns.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace culprit::cluster {
namespace {

// e^-0.2 in units of 2^-32. Powers are made by repeated multiplication, rounding
// down, so no library's exp() has a say in the result.
constexpr uint64_t kLeafDecay = 3516421809;

// e^(-0.2 * distance) by distance from the leaf, down to where it is 0.
std::vector<Fixed> LeafFactors() {
  std::vector<Fixed> factors;
  for (uint64_t power = uint64_t{1} << 32; power >> (32 - kFixedBits) != 0;
       power = power * kLeafDecay >> 32) {
    factors.push_back(static_cast<Fixed>(power >> (32 - kFixedBits)));
  }
  return factors;
}

FrameWeights WeightsAt(std::span<const Symbol> symbols, size_t i, const NgramCounts& counts) {
  const uint64_t uni = counts.Uni(symbols[i]);
  const uint64_t forward = i > 0 ? counts.ForwardPair(symbols[i - 1], symbols[i]) : kOne;
  const uint64_t backward =
      i + 1 < symbols.size() ? counts.BackwardPair(symbols[i], symbols[i + 1]) : kOne;
  FrameWeights weights{};
  for (size_t neighbours = 0; neighbours < weights.size(); ++neighbours) {
    const uint64_t sum = ((neighbours & kCallerToo) != 0 ? forward : kOne) +
                         ((neighbours & kCalleeToo) != 0 ? backward : kOne);
    weights[neighbours] = static_cast<Fixed>(uni * sum >> (kFixedBits + 1));
  }
  return weights;
}

void Scale(FrameWeights& weights, Fixed factor) {
  for (Fixed& weight : weights) {
    weight = static_cast<Fixed>(uint64_t{weight} * factor >> kFixedBits);
  }
}

std::span<const Symbol> Compared(const PatternSymbols& pattern) {
  return std::span(pattern).last(std::min(pattern.size(), kMaxFrames));
}

}  // namespace

WeightedPatterns::WeightedPatterns(const std::vector<PatternSymbols>& patterns,
                                   const SymbolWords& words, const NgramCounts& counts,
                                   bool weight_to_leaf)
    : words_(&words), index_of_(patterns.size()) {
  std::iota(index_of_.begin(), index_of_.end(), 0U);
  std::stable_sort(index_of_.begin(), index_of_.end(),
                   [&](uint32_t a, uint32_t b) { return patterns[a] < patterns[b]; });
  std::unordered_map<Symbol, uint32_t> number_of;
  const auto class_of = [&](Symbol symbol) {
    const Symbol first = words.ClassOf(symbol);
    const auto [found, is_new] =
        number_of.try_emplace(first, static_cast<uint32_t>(symbol_of_class_.size()));
    if (is_new) symbol_of_class_.push_back(first);
    return found->second;
  };
  const std::vector<Fixed> factors = LeafFactors();
  begins_.push_back(0);
  for (const uint32_t index : index_of_) {
    const std::span<const Symbol> symbols = Compared(patterns[index]);
    for (size_t i = 0; i < symbols.size(); ++i) {
      classes_.push_back(class_of(symbols[i]));
      weights_.push_back(WeightsAt(symbols, i, counts));
      if (!weight_to_leaf) continue;
      const size_t distance = symbols.size() - 1 - i;
      Scale(weights_.back(), distance < factors.size() ? factors[distance] : 0);
    }
    begins_.push_back(classes_.size());
  }
}

}  // namespace culprit::cluster
