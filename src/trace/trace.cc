// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace culprit::trace {

bool ComesBefore(const Event& a, const Event& b) {
  if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
  const auto rest = [](const Event& e) {
    return std::tuple(-e.dur_ns, static_cast<int>(e.kind), e.thread.value, e.peer.value);
  };
  return rest(a) < rest(b);
}

// Times with indexes are a third of the size of events and mostly settle the order.
void SortByTime(std::vector<Event>& events) {
  if (std::is_sorted(events.begin(), events.end(), ComesBefore)) return;
  CULPRIT_CHECK(events.size() < UINT32_MAX);
  struct Key {
    int64_t time_ns;
    uint32_t index;
  };
  std::vector<Key> keys;
  keys.reserve(events.size());
  for (const Event& event : events) {
    keys.push_back({event.time_ns, static_cast<uint32_t>(keys.size())});
  }
  const auto earlier = [](const Key& a, const Key& b) { return a.time_ns < b.time_ns; };
  std::stable_sort(keys.begin(), keys.end(), earlier);
  for (auto begin = keys.begin(); begin != keys.end();) {
    const auto end = std::find_if(begin + 1, keys.end(),
                                  [&](const Key& key) { return key.time_ns != begin->time_ns; });
    std::stable_sort(begin, end, [&](const Key& a, const Key& b) {
      return ComesBefore(events[a.index], events[b.index]);
    });
    begin = end;
  }
  std::vector<Event> sorted;
  sorted.reserve(events.size());
  for (const Key& key : keys) sorted.push_back(events[key.index]);
  events = std::move(sorted);
}

}  // namespace culprit::trace
