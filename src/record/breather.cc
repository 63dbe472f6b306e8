// SPDX-License-Identifier: Apache-2.0
#include "record/breather.h"

#include <bit>
#include <limits>

#include "record/machine.h"

namespace culprit::record {

BreatherClock RealClock() { return {.now_ns = MonotonicNs, .sleep_ns = SleepNs}; }

void Breather::Look() {
  const int64_t now_ns = clock_.now_ns();
  if (now_ns - begin_ns_ < kWorkNs) return;
  if (now_ns >= crowded_until_ns_ && !is_urgent_()) {
    clock_.sleep_ns(kSleepNs);
    const int64_t awake_ns = clock_.now_ns();
    NoteLate(awake_ns, awake_ns - now_ns - kSleepNs);
  }
  Begin();
}

void Breather::NoteLate(int64_t now_ns, int64_t late_ns) {
  late_ = static_cast<uint16_t>(late_ << 1 | (late_ns >= kLateNs ? 1 : 0));
  if (std::popcount(late_) < std::numeric_limits<uint16_t>::digits / 2) return;
  crowded_until_ns_ = now_ns + kCrowdedNs;
  late_ = 0;
}

}  // namespace culprit::record
