// SPDX-License-Identifier: Apache-2.0
//
// NaiveMaximal: the definition of MineMaximal's answer, written down as a
// program: list all subsequences, add up, keep the costly, keep the maximal.
// Exponential; the oracle of the tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "mine/maximal.h"

namespace culprit::mine {

inline bool NaiveContains(const std::vector<Symbol>& whole, const std::vector<Symbol>& part) {
  auto at = whole.begin();
  for (const Symbol symbol : part) {
    at = std::find(at, whole.end(), symbol);
    if (at == whole.end()) return false;
    ++at;
  }
  return true;
}

inline std::vector<Pattern> NaiveMaximal(const WeightedSequences& sequences, int64_t lambda) {
  std::map<std::vector<Symbol>, int64_t> costs;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto sequence = sequences.at(i);
    std::set<std::vector<Symbol>> parts;
    for (size_t chosen = 1; chosen < size_t{1} << sequence.size(); ++chosen) {
      std::vector<Symbol> part;
      for (size_t j = 0; j < sequence.size(); ++j) {
        if ((chosen >> j & 1U) != 0) part.push_back(sequence[j]);
      }
      parts.insert(part);
    }
    for (const auto& part : parts) costs[part] += sequences.costs[i];
  }
  std::erase_if(costs, [&](const auto& entry) { return entry.second < lambda; });
  std::vector<Pattern> patterns;
  for (const auto& [part, cost] : costs) {
    const bool maximal =
        std::none_of(costs.begin(), costs.end(), [&part = part](const auto& other) {
          return other.first.size() > part.size() && NaiveContains(other.first, part);
        });
    if (maximal) patterns.push_back({part, cost});
  }
  std::sort(patterns.begin(), patterns.end(), [](const Pattern& a, const Pattern& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.symbols < b.symbols;
  });
  return patterns;
}

}  // namespace culprit::mine
