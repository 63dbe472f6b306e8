// SPDX-License-Identifier: Apache-2.0
//
// Heaviest: which nodes of a forest to keep so that it has at most `most`. A
// node weighs no less than any below it, so the heaviest nodes, equals by their
// number, are a forest again. Nodes of no weight are never kept. O(n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace culprit::analyze {

// The kept nodes, ascending. A parent's number must be below its children's.
inline std::vector<uint32_t> Heaviest(const std::vector<int64_t>& weights, size_t most) {
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) kept.push_back(i);
  }
  if (kept.size() <= most) return kept;
  std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                   [&](uint32_t a, uint32_t b) {
                     return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
                   });
  kept.resize(most);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace culprit::analyze
