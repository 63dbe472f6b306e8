// SPDX-License-Identifier: Apache-2.0
#include "guard/iteration_walk.h"

namespace culprit::guard {

Held AskHolder(const WaitStacks::Frames* stack, uint32_t holder, uint64_t base16) {
  if (stack == nullptr || stack->empty() || holder == kNoIndex) return Held::kNotKnown;
  for (const WaitStacks::Frame& frame : *stack) {
    if (frame.sp16 > base16) return Held::kNo;
    if (frame.sp16 == base16 && frame.function == holder) return Held::kYes;
  }
  return Held::kNo;
}

LoopSites::LoopSites(const std::vector<EventLoop>& loops, const WaitStacks& stacks)
    : stacks_(stacks) {
  for (size_t i = 0; i < loops.size(); ++i) {
    for (const auto& [site, offset] : loops[i].sites) {
      sites_[site].push_back({static_cast<uint32_t>(i), offset / 16, loops[i].holder,
                              loops[i].hand_over, loops[i].turns});
    }
  }
}

const LoopSites::Head* LoopSites::Find(const WaitSite& site, uint64_t sp16,
                                       const WaitStacks::Frames* stack) const {
  const auto found = sites_.find(site);
  if (found == sites_.end()) return nullptr;
  // Of several that hold it the outermost; what is known is worth more.
  const Head* best = nullptr;
  Held best_held = Held::kNo;
  for (const Head& head : found->second) {
    const Held held = AskHolder(stack, head.holder, head.BaseOf(sp16));
    if (held == Held::kNo || held < best_held) continue;
    if (held == best_held && best != nullptr && head.base_offset16 <= best->base_offset16) continue;
    best = &head;
    best_held = held;
  }
  return best;
}

}  // namespace culprit::guard
