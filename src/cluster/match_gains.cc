// SPDX-License-Identifier: Apache-2.0
#include "cluster/match_gains.h"

#include <algorithm>

namespace culprit::cluster {
namespace {

// The least by which a neighbour in the segment lowers a frame's weight. The
// four weights were rounded apart from each other, hence the minimum.
Fixed LossByCaller(const FrameWeights& weights) {
  return std::min(weights[kAlone] - weights[kCallerToo], weights[kCalleeToo] - weights[kBothToo]);
}
Fixed LossByCallee(const FrameWeights& weights) {
  return std::min(weights[kAlone] - weights[kCalleeToo], weights[kCallerToo] - weights[kBothToo]);
}

std::vector<MatchGain> FrameGains(std::span<const uint32_t> classes,
                                  std::span<const FrameWeights> weights) {
  std::vector<MatchGain> gains(classes.size());
  for (size_t i = 0; i < classes.size(); ++i) {
    MatchGain& gain = gains[i];
    gain.of_class = classes[i];
    gain.frames = 1;
    gain.heaviest = weights[i][kAlone];
    gain.apart = gain.heaviest;
    gain.together = gain.heaviest;
    gain.unmatched = weights[i][kBothToo];
    if (i == 0) continue;
    gain.caller_class = classes[i - 1];
    const uint32_t loss = LossByCaller(weights[i]) + LossByCallee(weights[i - 1]);
    gain.together -= std::min(gain.together, loss);
  }
  return gains;
}

}  // namespace

MatchGains::MatchGains(const WeightedPatterns& patterns) {
  begins_.push_back(0);
  for (Rank rank = 0; rank < patterns.size(); ++rank) {
    std::vector<MatchGain> gains = FrameGains(patterns.Classes(rank), patterns.Weights(rank));
    std::sort(gains.begin(), gains.end(),
              [](const MatchGain& a, const MatchGain& b) { return a.of_class < b.of_class; });
    for (const MatchGain& gain : gains) {
      if (gains_.size() == begins_.back() || gains_.back().of_class != gain.of_class) {
        gains_.push_back(gain);
        continue;
      }
      // Which of several frames match whom is open, and so is the caller.
      MatchGain& all = gains_.back();
      all.caller_class = kNoClass;
      ++all.frames;
      all.heaviest = std::max(all.heaviest, gain.heaviest);
      all.apart += gain.apart;
      all.together = all.apart;
      all.unmatched += gain.unmatched;
    }
    begins_.push_back(gains_.size());
  }
}

}  // namespace culprit::cluster
