// SPDX-License-Identifier: Apache-2.0
#include "guard/iteration_walk.h"

namespace culprit::guard {

LoopSites::LoopSites(const std::vector<EventLoop>& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    for (const auto& [site, offset] : loops[i].sites) {
      // Of loops that share a wait call the busiest comes first.
      sites_.try_emplace(site, Found{static_cast<uint32_t>(i), offset / 16});
    }
  }
}

}  // namespace culprit::guard
