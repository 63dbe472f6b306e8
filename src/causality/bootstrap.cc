// SPDX-License-Identifier: Apache-2.0
#include "causality/bootstrap.h"

#include <random>

namespace culprit::causality {

Bootstrap::Bootstrap(size_t traces, uint32_t resamples, uint64_t seed)
    : resamples_(resamples), draws_(traces * resamples) {
  std::mt19937_64 random(seed);
  for (uint32_t r = 0; r < resamples; ++r) {
    for (size_t i = 0; i < traces; ++i) {
      // The high bits times n: the same on every library, unlike std's distributions.
      const uint64_t trace = (random() >> 32) * traces >> 32;
      uint16_t& draws = draws_[trace * resamples + r];
      if (draws < UINT16_MAX) ++draws;
    }
  }
}

void Bootstrap::Add(size_t trace, int64_t value, std::vector<int64_t>& sums) const {
  const std::span<const uint16_t> draws = Draws(trace);
  // Unsigned, for the sums of damaged traces may wrap around.
  for (size_t r = 0; r < draws.size(); ++r) {
    sums[r] = static_cast<int64_t>(static_cast<uint64_t>(sums[r]) +
                                   static_cast<uint64_t>(value) * draws[r]);
  }
}

}  // namespace culprit::causality
