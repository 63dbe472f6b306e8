// SPDX-License-Identifier: Apache-2.0
//
// RandomPatterns: made-up patterns for tests, with words and counts that make
// ties and cheap substitutions common: few distinct words, few distinct counts,
// names of equal words, unnamed frames, frames that stand in every stack. The
// same seed gives the same patterns everywhere.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cluster/ngram_counts.h"
#include "cluster/symbol_words.h"

namespace culprit::cluster {

struct RandomPatterns {
  SymbolWords words;
  NgramCounts counts;
  std::vector<PatternSymbols> patterns;
};

struct RandomPatternOptions {
  uint32_t seed = 1;
  size_t patterns = 20;
  size_t symbols = 12;
  size_t words = 6;
  size_t longest = 8;
  size_t variants = 3;  // patterns a family; the others are edited copies of the first
};

inline RandomPatterns MakeRandomPatterns(const RandomPatternOptions& options) {
  std::mt19937 random(options.seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  RandomPatterns made;
  for (size_t s = 0; s < options.symbols; ++s) {
    if (below(8) == 0) {
      made.words.AddUnnamed();
      continue;
    }
    std::string name;
    for (size_t w = 0; w <= below(4); ++w) {
      name += "_" + std::string(1, static_cast<char>('a' + below(options.words)));
    }
    made.words.AddNamed(name);
  }
  const auto symbol = [&] { return static_cast<Symbol>(below(options.symbols)); };
  while (made.patterns.size() < options.patterns) {
    PatternSymbols pattern;
    if (made.patterns.empty() || below(options.variants) == 0) {
      const size_t length = below(options.longest + 1);
      while (pattern.size() < length) pattern.push_back(symbol());
    } else {
      pattern = made.patterns[below(made.patterns.size())];
      for (size_t edit = 0; edit <= below(3) && !pattern.empty(); ++edit) {
        const auto at = pattern.begin() + static_cast<ptrdiff_t>(below(pattern.size()));
        if (below(3) == 0) {
          pattern.erase(at);
        } else if (below(2) == 0) {
          *at = symbol();
        } else {
          pattern.insert(at, symbol());
        }
      }
    }
    made.patterns.push_back(pattern);
  }
  for (size_t i = 0; i < 10; ++i) {
    PatternSymbols stack = made.patterns[below(made.patterns.size())];
    // Sometimes a frame that every stack has, which then weighs nothing.
    if (options.seed % 3 == 0) stack.insert(stack.begin(), 0);
    made.counts.AddStack(stack, 1 + below(3));
  }
  return made;
}

}  // namespace culprit::cluster
