// SPDX-License-Identifier: Apache-2.0
#include "cluster/pair_bound.h"

#include <algorithm>

namespace culprit::cluster {

PairBound::PairBound(const WeightedPatterns& patterns, const MatchGains& gains,
                     const SubstitutionCosts& costs, SubstitutionRows& rows)
    : patterns_(&patterns),
      gains_(&gains),
      costs_(&costs),
      rows_(&rows),
      gain_of_class_(patterns.classes(), kNoClass) {}

void PairBound::BindGains() {
  if (bound_ != kNoClass) {
    for (const MatchGain& gain : gains_->Of(bound_)) gain_of_class_[gain.of_class] = kNoClass;
  }
  bound_ = rows_->bound();
  const std::span<const MatchGain> gains = gains_->Of(bound_);
  for (uint32_t i = 0; i < gains.size(); ++i) gain_of_class_[gains[i].of_class] = i;
}

uint64_t PairBound::MostMatched(Rank other) const {
  const std::span<const MatchGain> bound_gains = gains_->Of(bound_);
  uint64_t matched = 0;
  for (const MatchGain& gain : gains_->Of(other)) {
    const uint32_t place = gain_of_class_[gain.of_class];
    if (place == kNoClass) continue;
    const MatchGain& bound_gain = bound_gains[place];
    if (gain.MatchesTogether(bound_gain)) {
      matched += uint64_t{gain.together} + bound_gain.together;
    } else {
      const uint64_t frames = std::min(gain.frames, bound_gain.frames);
      matched += std::min<uint64_t>(gain.apart, frames * gain.heaviest) +
                 std::min<uint64_t>(bound_gain.apart, frames * bound_gain.heaviest);
    }
  }
  return matched;
}

// For each frame of the bound pattern, by the frames of the other one.
void PairBound::FindCheapest(Rank other) {
  cheapest_.assign(patterns_->Classes(bound_).size(), kOne);
  for (const uint32_t of_class : patterns_->Classes(other)) {
    const Fixed* costs = rows_->Costs(rows_->RowOf(of_class).number);
    for (size_t i = 0; i < cheapest_.size(); ++i) cheapest_[i] = std::min(cheapest_[i], costs[i]);
  }
}

Fixed PairBound::UpperBound(Rank other) {
  const std::span<const uint32_t> classes = patterns_->Classes(other);
  const std::span<const FrameWeights> weights = patterns_->Weights(other);
  const std::span<const FrameWeights> bound_weights = patterns_->Weights(bound_);
  // Frames with a partner have a cheapest cost of 0 and add nothing.
  uint64_t unmatched = 0;
  for (size_t j = 0; j < classes.size(); ++j) {
    unmatched += uint64_t{rows_->RowOf(classes[j]).cheapest} * weights[j][kBothToo] >> kFixedBits;
  }
  FindCheapest(other);
  for (size_t i = 0; i < cheapest_.size(); ++i) {
    unmatched += uint64_t{cheapest_[i]} * bound_weights[i][kBothToo] >> kFixedBits;
  }
  // Frames may weigh nothing; then lengths decide, and anything is possible.
  if (unmatched == 0) return kOne;
  const uint64_t matched = MostMatched(other);
  return static_cast<Fixed>((matched << kFixedBits) / (matched + unmatched));
}

// Most candidates fail by the other pattern's frames alone, which takes no look
// at the rows themselves.
bool PairBound::MayReach(const Candidate& candidate, Fixed least) {
  const auto exceeds = [&](uint64_t unmatched) {
    return least * unmatched >> (2 * kFixedBits - kSpareBits) > candidate.spare;
  };
  const std::span<const uint32_t> classes = patterns_->Classes(candidate.rank);
  const std::span<const FrameWeights> weights = patterns_->Weights(candidate.rank);
  uint64_t beyond = 0;
  for (size_t j = 0; j < classes.size(); ++j) {
    beyond += uint64_t{rows_->RowOf(classes[j]).beyond} * weights[j][kBothToo] >> kFixedBits;
  }
  if (exceeds(beyond)) return false;
  FindCheapest(candidate.rank);
  const std::span<const uint32_t> bound_classes = patterns_->Classes(bound_);
  const std::span<const FrameWeights> bound_weights = patterns_->Weights(bound_);
  for (size_t i = 0; i < cheapest_.size(); ++i) {
    if (cheapest_[i] == 0) continue;
    const uint64_t more = cheapest_[i] - costs_->Cheapest(bound_classes[i]);
    beyond += more * bound_weights[i][kBothToo] >> kFixedBits;
  }
  return !exceeds(beyond);
}

}  // namespace culprit::cluster
