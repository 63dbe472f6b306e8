// SPDX-License-Identifier: Apache-2.0
//
// Activity: where in the trace an inferred function was at work: the abnormal
// units with the symbols it owns too many of (all such units if no abnormal one
// has them), the first and last of those calls, and which episodes of its
// profile, or for [not in profile] of the units themselves, are found there.
// Costs a pass over the trace a row; episodes only for the first rows.
#pragma once

#include <cstdint>
#include <vector>

#include "episode/anomalies.h"
#include "episode/episode_match.h"
#include "episode/ownership.h"
#include "episode/profile.h"

namespace culprit::episode {

struct InferredFunction;

class Activity {
 public:
  Activity(const Profile& profile, const SyscallLog& log, const Units& units,
           const Anomalies& anomalies, const EpisodeOptions& options)
      : profile_(profile), log_(log), units_(units), anomalies_(anomalies), options_(options) {}

  // Fills units, times and episodes.
  void Describe(const OwnedRow& row, InferredFunction& function);

 private:
  std::vector<uint32_t> UnitsWith(const std::vector<bool>& wanted) const;
  void MatchEpisodes(const OwnedRow& row, const std::vector<bool>& wanted,
                     InferredFunction& function) const;
  void MineEpisodes(const std::vector<bool>& wanted, InferredFunction& function) const;

  const Profile& profile_;
  const SyscallLog& log_;
  const Units& units_;
  const Anomalies& anomalies_;
  const EpisodeOptions& options_;
  size_t described_ = 0;
};

// The first and last call of one unit.
void SetActiveTimes(const SyscallLog& log, const Unit& unit, InferredFunction& function);

}  // namespace culprit::episode
