// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include <algorithm>
#include <tuple>

namespace culprit::trace {

void SortByTime(std::vector<Event>& events) {
  const auto key = [](const Event& e) {
    return std::tuple(e.time_ns, -e.dur_ns, static_cast<int>(e.kind), e.thread.value, e.peer.value);
  };
  std::stable_sort(events.begin(), events.end(),
                   [&](const Event& a, const Event& b) { return key(a) < key(b); });
}

}  // namespace culprit::trace
