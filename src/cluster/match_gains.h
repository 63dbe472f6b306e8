// SPDX-License-Identifier: Apache-2.0
//
// MatchGains: for each class of frames in a pattern, the most that matching
// those frames can weigh, on the pattern's own side. The ground of both bounds
// on similarity, the one over an index and the one of a pair.
//
// Tracing back from the leaf takes every match it meets. So where a caller and
// a callee stand next to each other in both patterns, and the callee's class
// stands in each of them once, a match of the callee drags the caller into its
// segment: the callee then adds at most `together` to what is matched, the loss
// it inflicts on the caller's weight taken off. Otherwise it adds at most
// `apart`. Immutable; 28 bytes a frame at most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/fixed.h"
#include "cluster/weighted_patterns.h"

namespace culprit::cluster {

inline constexpr uint32_t kNoClass = UINT32_MAX;

struct MatchGain {
  uint32_t of_class = 0;
  uint32_t caller_class = kNoClass;  // of the only frame; none if it is first or one of several
  uint32_t frames = 0;
  uint32_t heaviest = 0;  // of the frames
  // Sums over the frames; kMaxFrames of kOne fit.
  uint32_t apart = 0;
  uint32_t together = 0;
  uint32_t unmatched = 0;  // the least that they weigh in any segment

  bool MatchesTogether(const MatchGain& other) const {
    return caller_class == other.caller_class && caller_class != kNoClass;
  }
};

class MatchGains {
 public:
  explicit MatchGains(const WeightedPatterns& patterns);

  // By class, ascending.
  std::span<const MatchGain> Of(Rank rank) const {
    return std::span(gains_).subspan(begins_[rank], begins_[rank + 1] - begins_[rank]);
  }

 private:
  std::vector<MatchGain> gains_;
  std::vector<size_t> begins_;
};

}  // namespace culprit::cluster
