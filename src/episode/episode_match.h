// SPDX-License-Identifier: Apache-2.0
//
// The paper's own ranking (PerfScope, 3.2.3), kept for comparison: closed
// frequent episodes are mined from every abnormal unit; a function whose own
// episodes are among them is a candidate, and is kept if the unit has the
// matched ones at least as often, in sum, as the function's whole profile. Its
// score is the largest relative increase of a matched count, ties go to the one
// with the larger share of its episodes matched; a function stands with its
// best unit. The text says "increasing" order, its metric says highest first.
//
// Equal units are mined once, distinct ones in parallel; deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "episode/anomalies.h"
#include "episode/closed_episodes.h"
#include "episode/profile.h"

namespace culprit::episode {

struct EpisodeMatch {
  Episode episode;
  uint64_t count = 0;          // in the unit
  uint64_t profile_count = 0;  // in the function's profile
};

struct MatchedFunction {
  uint32_t function = 0;  // in Profile::functions
  uint32_t unit = 0;      // the first unit of the best sequence
  double score = 0;       // (count - profile) / profile
  double matched_share = 0;
  uint64_t units = 0;                 // abnormal units that made it a candidate that was kept
  std::vector<EpisodeMatch> matched;  // largest increase first
};

struct EpisodeRanking {
  std::vector<MatchedFunction> functions;  // best first
  uint64_t sequences = 0;                  // distinct ones mined
  uint64_t capped = 0;                     // of them, those with too many candidates
};

EpisodeRanking RankByEpisodes(const Profile& profile, const SyscallLog& log, const Units& units,
                              const Anomalies& anomalies, const EpisodeOptions& options,
                              size_t jobs);

// The symbols of a unit, in order.
std::vector<Symbol> SymbolsOf(const SyscallLog& log, const Unit& unit);

}  // namespace culprit::episode
