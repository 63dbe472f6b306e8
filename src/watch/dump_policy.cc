// SPDX-License-Identifier: Apache-2.0
#include "watch/dump_policy.h"

#include <algorithm>

namespace culprit::watch {

uint64_t DumpPolicy::PauseOf(uint64_t dumped) const {
  if (dumped < options_.first) return 0;
  constexpr uint64_t kMostDoublings = 20;
  const uint64_t doublings = std::min<uint64_t>(dumped - options_.first, kMostDoublings);
  return std::min(options_.longest_pause_ns, options_.pause_ns << doublings);
}

bool DumpPolicy::Wants(const std::string& type, uint64_t now_ns, uint64_t excess) {
  Count& count = counts_[type];
  ++count.seen;
  const bool far_worse = excess / options_.worse >= std::max<uint64_t>(any_last_excess_, 1);
  const uint64_t gap_ns = far_worse ? options_.worse_gap_ns : options_.gap_ns;
  if (any_ && now_ns - any_last_ns_ < gap_ns) return false;
  const auto last = last_ns_.find(type);
  if (last != last_ns_.end() && now_ns - last->second < PauseOf(count.dumped)) return false;
  ++count.dumped;
  last_ns_[type] = now_ns;
  any_last_ns_ = now_ns;
  any_last_excess_ = excess;
  any_ = true;
  return true;
}

}  // namespace culprit::watch
