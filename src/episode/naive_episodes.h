// SPDX-License-Identifier: Apache-2.0
//
// NaiveClosedEpisodes: every word over the alphabet up to a length, counted by
// its own state machine, kept if frequent and if no word with one symbol more
// has its count. The oracle of closed_episodes.h; shares nothing with it.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "episode/closed_episodes.h"

namespace culprit::episode {

inline uint64_t NaiveCount(const std::vector<WeightedSequence>& sequences,
                           const std::vector<Symbol>& word) {
  uint64_t count = 0;
  for (const WeightedSequence& sequence : sequences) {
    size_t state = 0;
    for (const Symbol symbol : sequence.symbols) {
      if (symbol == word[state]) ++state;
      if (state == word.size()) {
        state = 0;
        count += sequence.weight;
      }
    }
  }
  return count;
}

inline std::map<std::vector<Symbol>, uint64_t> NaiveClosedEpisodes(
    const std::vector<WeightedSequence>& sequences, Symbol alphabet, uint64_t support,
    size_t max_length) {
  std::map<std::vector<Symbol>, uint64_t> frequent;
  std::vector<std::vector<Symbol>> words = {{}};
  for (size_t length = 1; length <= max_length; ++length) {
    std::vector<std::vector<Symbol>> longer;
    for (const std::vector<Symbol>& word : words) {
      for (Symbol symbol = 0; symbol < alphabet; ++symbol) {
        longer.push_back(word);
        longer.back().push_back(symbol);
        const uint64_t count = NaiveCount(sequences, longer.back());
        if (count >= support) frequent[longer.back()] = count;
      }
    }
    words = std::move(longer);
  }
  std::map<std::vector<Symbol>, uint64_t> closed = frequent;
  for (const auto& [word, count] : frequent) {
    for (size_t at = 0; word.size() < max_length && at <= word.size(); ++at) {
      for (Symbol symbol = 0; symbol < alphabet; ++symbol) {
        std::vector<Symbol> longer = word;
        longer.insert(longer.begin() + static_cast<ptrdiff_t>(at), symbol);
        const auto found = frequent.find(longer);
        if (found != frequent.end() && found->second == count) closed.erase(word);
      }
    }
  }
  return closed;
}

}  // namespace culprit::episode
