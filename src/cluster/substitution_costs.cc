// SPDX-License-Identifier: Apache-2.0
#include "cluster/substitution_costs.h"

#include <algorithm>
#include <utility>

namespace culprit::cluster {
namespace {

// Classes by word: (word, class), sorted. As common words are counted as
// multisets, the second `Foo` of a name is a word of its own.
using Holder = std::pair<uint64_t, uint32_t>;
std::vector<Holder> WordHolders(const WeightedPatterns& patterns) {
  std::vector<Holder> holders;
  for (uint32_t of_class = 0; of_class < patterns.classes(); ++of_class) {
    uint64_t occurrence = 0;
    uint64_t last = UINT64_MAX;
    for (const uint64_t word : patterns.words().WordsOf(patterns.SymbolOf(of_class))) {
      occurrence = word == last ? occurrence + 1 : 0;
      last = word;
      holders.emplace_back(word << 32 | occurrence, of_class);
    }
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

}  // namespace

SubstitutionCosts::SubstitutionCosts(const WeightedPatterns& patterns, size_t dense_classes)
    : patterns_(&patterns), cheapest_(patterns.classes(), kOne) {
  const size_t count = patterns.classes();
  FindCheapest();
  if (count > dense_classes) return;
  std::vector<Fixed> table(count * count);
  for (uint32_t a = 0; a < count; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      const Fixed cost = Cost(a, b);
      table[a * count + b] = cost;
      table[b * count + a] = cost;
    }
  }
  table_ = std::move(table);
}

// Classes that share no word cost kOne, so only the others are looked at.
void SubstitutionCosts::FindCheapest() {
  const std::vector<Holder> holders = WordHolders(*patterns_);
  const size_t count = patterns_->classes();
  std::vector<std::vector<std::pair<size_t, size_t>>> words_of(count);
  for (size_t begin = 0, end = 0; begin < holders.size(); begin = end) {
    while (end < holders.size() && holders[end].first == holders[begin].first) ++end;
    for (size_t i = begin; i < end; ++i) words_of[holders[i].second].emplace_back(begin, end);
  }
  std::vector<uint32_t> common(count);
  std::vector<uint32_t> met;
  for (uint32_t of_class = 0; of_class < count; ++of_class) {
    for (const auto& [begin, end] : words_of[of_class]) {
      for (size_t i = begin; i < end; ++i) {
        const uint32_t other = holders[i].second;
        if (common[other]++ == 0) met.push_back(other);
      }
    }
    for (const uint32_t other : met) {
      const uint64_t all = words_of[of_class].size() + words_of[other].size();
      const uint64_t cost = ((all - 2 * uint64_t{common[other]}) << kFixedBits) / all;
      common[other] = 0;
      if (other == of_class) continue;
      cheapest_[of_class] = std::min(cheapest_[of_class], static_cast<Fixed>(cost));
    }
    met.clear();
  }
}

}  // namespace culprit::cluster
