// SPDX-License-Identifier: Apache-2.0
#include "cluster/candidate_index.h"

#include <algorithm>

namespace culprit::cluster {
namespace {

// A pair reaches `least` if (1 - least) * matched >= least * unmatched. Gains are
// rounded up and needs rounded down.
constexpr uint32_t kDropped = 2 * kFixedBits - kSpareBits;

uint32_t RoundedUp(uint64_t value) {
  return static_cast<uint32_t>((value + (uint64_t{1} << kDropped) - 1) >> kDropped);
}

}  // namespace

CandidateIndex::Posting CandidateIndex::MakePosting(Rank rank, const MatchGain& gain) const {
  // Frames with a partner do not cost what `needed_` counts for every frame.
  const uint64_t saved =
      least_ * (uint64_t{costs_->Cheapest(gain.of_class)} * gain.unmatched >> kFixedBits);
  const uint64_t share = kOne - least_;
  // At least 1, so that a sum of 0 means that no class is shared.
  return {.rank = rank,
          .caller_class = gain.caller_class,
          .apart = RoundedUp(share * gain.apart + saved) + 1,
          .together = RoundedUp(share * gain.together + saved) + 1};
}

CandidateIndex::CandidateIndex(const WeightedPatterns& patterns, const MatchGains& gains,
                               const SubstitutionCosts& costs, Fixed least)
    : gains_(&gains), costs_(&costs), least_(least), begins_(patterns.classes() + 1) {
  for (Rank rank = 0; rank < patterns.size(); ++rank) {
    for (const MatchGain& gain : gains.Of(rank)) ++begins_[gain.of_class + 1];
  }
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  postings_.resize(begins_.back());
  std::vector<size_t> next = begins_;
  for (Rank rank = 0; rank < patterns.size(); ++rank) {
    uint64_t needed = 0;
    for (const MatchGain& gain : gains.Of(rank)) {
      postings_[next[gain.of_class]++] = MakePosting(rank, gain);
      needed += least_ * (uint64_t{costs_->Cheapest(gain.of_class)} * gain.unmatched >> kFixedBits);
    }
    needed_.push_back(static_cast<uint32_t>(needed >> kDropped));
    AddLightest(patterns.Weights(rank));
  }
  lightest_begins_.push_back(lightest_.size());
}

void CandidateIndex::AddLightest(std::span<const FrameWeights> weights) {
  std::vector<Fixed> least;
  for (const FrameWeights& frame : weights) least.push_back(frame[kBothToo]);
  std::sort(least.begin(), least.end());
  lightest_begins_.push_back(lightest_.size());
  uint64_t sum = 0;
  lightest_.push_back(0);
  for (const Fixed weight : least) {
    sum += weight;
    lightest_.push_back(static_cast<uint32_t>(least_ * sum >> kDropped));
  }
}

// As many frames of the longer pattern as it is longer are deleted, at twice
// their weight (weights are doubled). At most once was needed for them so far.
uint32_t CandidateIndex::LeastDeleted(Rank a, Rank b) const {
  const size_t a_frames = lightest_begins_[a + 1] - lightest_begins_[a];
  const size_t b_frames = lightest_begins_[b + 1] - lightest_begins_[b];
  return a_frames > b_frames ? lightest_[lightest_begins_[a] + a_frames - b_frames]
                             : lightest_[lightest_begins_[b] + b_frames - a_frames];
}

void CandidateIndex::CandidatesBelow(Rank rank, std::vector<uint32_t>& sums,
                                     std::vector<Candidate>& found) const {
  found.clear();
  // Empty patterns come first in canonical order, and equal each other.
  if (least_ == 0 || gains_->Of(rank).empty()) {
    for (Rank other = 0; other < rank; ++other) found.push_back({other, UINT32_MAX});
    return;
  }
  sums.assign(rank, 0);
  for (const MatchGain& gain : gains_->Of(rank)) {
    const Posting own = MakePosting(rank, gain);
    // No caller is equal to no other, a missing one included.
    const uint32_t caller = own.caller_class == kNoClass ? kNoClass - 1 : own.caller_class;
    // The list holds `rank` itself, which ends the loop.
    for (const Posting* posting = postings_.data() + begins_[gain.of_class]; posting->rank < rank;
         ++posting) {
      sums[posting->rank] += posting->caller_class == caller ? own.together + posting->together
                                                             : own.apart + posting->apart;
    }
  }
  for (Rank other = 0; other < rank; ++other) {
    uint32_t needed = needed_[rank] + needed_[other];
    if (sums[other] == 0 || sums[other] < needed) continue;
    needed += LeastDeleted(rank, other);
    if (sums[other] >= needed) found.push_back({other, sums[other] - needed});
  }
}

}  // namespace culprit::cluster
