// SPDX-License-Identifier: Apache-2.0
//
// Closed frequent episodes: short orders of symbols that recur in sequences,
// with anything in between. The count of an episode is what a state machine
// counts that waits for its symbols one after the other and starts again when
// it has seen them all: occurrences without overlap (PerfScope, 3.1.2). An
// episode is frequent if its count reaches the support L = max(min(n p, 10), 2),
// n the number of symbols in all sequences; closed if no episode with one or
// more symbols inserted, up to the bound, has the same count. The answer is
// exact.
//
// When a level would need more than max_candidates state machines it is left
// out whole, `bound` says how long the longest episodes looked for are, and
// `capped` is set. A pure function; sequences that are equal should be given
// once, with a weight. Cost: candidates times the rarest symbol's positions.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "episode/symbol.h"

namespace culprit::episode {

inline constexpr size_t kMaxEpisode = 4;

struct Episode {
  std::array<Symbol, kMaxEpisode> symbols = {};
  uint8_t length = 0;

  std::span<const Symbol> span() const { return {symbols.data(), length}; }
  bool Has(Symbol symbol) const;
  auto operator<=>(const Episode&) const = default;
};

struct EpisodeCount {
  Episode episode;
  uint64_t count = 0;

  bool operator==(const EpisodeCount&) const = default;
};

struct WeightedSequence {
  std::vector<Symbol> symbols;
  uint64_t weight = 1;
};

struct EpisodeOptions {
  uint64_t support = 0;  // 0: by the rule above
  double share = 0.01;   // p of the rule
  size_t max_length = kMaxEpisode;
  uint64_t max_candidates = 100'000;
};

struct ClosedEpisodes {
  std::vector<EpisodeCount> episodes;  // most frequent first, then in order of symbols
  uint64_t support = 0;
  uint64_t frequent = 0;  // episodes before those that are not closed were left out
  uint64_t candidates = 0;
  size_t bound = 0;
  bool capped = false;
};

// max(min(n p, 10), 2), rounded up.
uint64_t EpisodeSupport(uint64_t symbols, double share);

ClosedEpisodes MineClosedEpisodes(std::span<const WeightedSequence> sequences,
                                  const EpisodeOptions& options = {});

// What the state machine of one episode counts in one sequence.
uint64_t CountEpisode(std::span<const Symbol> sequence, const Episode& episode);

// Equal sequences become one with their weights added; the order is that of
// first appearance.
std::vector<WeightedSequence> MergeEqual(std::vector<WeightedSequence> sequences);

}  // namespace culprit::episode
