// SPDX-License-Identifier: Apache-2.0
#include "causality/propagated_wait.h"

#include <algorithm>
#include <tuple>

namespace culprit::causality {

void KeepMostPropagated(std::vector<PropagatedWait>& waits) {
  std::sort(waits.begin(), waits.end(), [](const PropagatedWait& a, const PropagatedWait& b) {
    const int64_t beyond_a = a.charged_ns - a.distinct_ns;
    const int64_t beyond_b = b.charged_ns - b.distinct_ns;
    if (beyond_a != beyond_b) return beyond_a > beyond_b;
    return std::tie(b.charged_ns, a.trace, a.begin_ns, a.thread, a.signature, a.waker) <
           std::tie(a.charged_ns, b.trace, b.begin_ns, b.thread, b.signature, b.waker);
  });
  if (waits.size() > kMaxPropagatedWaits) waits.resize(kMaxPropagatedWaits);
}

}  // namespace culprit::causality
