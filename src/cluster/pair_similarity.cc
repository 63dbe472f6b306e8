// SPDX-License-Identifier: Apache-2.0
#include "cluster/pair_similarity.h"

#include <algorithm>

namespace culprit::cluster {

Fixed PairSimilarity::Of(Rank other) {
  const Rank bound = rows_->bound();
  const std::span<const uint32_t> classes = patterns_->Classes(other);
  // Making a row may move the others: make all, then point at them.
  for (const uint32_t of_class : classes) rows_->RowOf(of_class);
  costs_.clear();
  for (const uint32_t of_class : classes) {
    costs_.push_back(rows_->Costs(rows_->RowOf(of_class).number));
  }
  const bool bound_is_left = bound < other;
  const std::vector<Step>& steps =
      alignment_.Align(patterns_->Classes(bound).size(), costs_, bound_is_left);
  return Weigh(steps, std::min(bound, other), std::max(bound, other), bound_is_left);
}

// All weights are doubled here, so that a mean of two sides loses nothing.
Fixed PairSimilarity::Weigh(const std::vector<Step>& steps, Rank left, Rank right,
                            bool bound_is_left) const {
  const std::span<const FrameWeights> left_weights = patterns_->Weights(left);
  const std::span<const FrameWeights> right_weights = patterns_->Weights(right);
  uint64_t matched = 0;
  uint64_t unmatched = 0;
  uint64_t matches = 0;
  size_t i = left_weights.size();
  size_t j = right_weights.size();
  for (size_t n = 0; n < steps.size(); ++n) {
    const bool callee_too = n > 0 && steps[n - 1] == steps[n];
    const bool caller_too = n + 1 < steps.size() && steps[n + 1] == steps[n];
    const size_t neighbours = (caller_too ? kCallerToo : 0) | (callee_too ? kCalleeToo : 0);
    if (steps[n] != Step::kInsertion) --i;
    if (steps[n] != Step::kDeletion) --j;
    switch (steps[n]) {
      case Step::kMatch:
        matched += uint64_t{left_weights[i][neighbours]} + right_weights[j][neighbours];
        ++matches;
        break;
      case Step::kSubstitution: {
        const uint64_t cost = bound_is_left ? costs_[j][i] : costs_[i][j];
        const uint64_t sum = uint64_t{left_weights[i][neighbours]} + right_weights[j][neighbours];
        unmatched += cost * sum >> kFixedBits;
        break;
      }
      case Step::kDeletion:
        unmatched += 2 * uint64_t{left_weights[i][neighbours]};
        break;
      case Step::kInsertion:
        unmatched += 2 * uint64_t{right_weights[j][neighbours]};
        break;
    }
  }
  if (matched + unmatched > 0) {
    return static_cast<Fixed>((matched << kFixedBits) / (matched + unmatched));
  }
  // Frames that stand in every stack weigh nothing: then lengths decide.
  if (steps.empty()) return kOne;
  return static_cast<Fixed>((matches << kFixedBits) / steps.size());
}

}  // namespace culprit::cluster
