// SPDX-License-Identifier: Apache-2.0
//
// EventCensus: what the events of a trace are and refer to, counted as they go
// by, so that whoever made a trace need not read it again to tell. A few
// instructions an event; a bit for each thread and stack. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/event.h"

namespace culprit::trace {

struct EventCensus {
  uint64_t waits = 0;
  uint64_t waits_with_waker = 0;
  // By id, whether events have them; what lies beyond the end has none.
  std::vector<bool> threads;
  std::vector<bool> stacks;

  void Count(const Event& event) {
    if (event.thread.valid()) Mark(event.thread.value, threads);
    if (event.stack.valid()) Mark(event.stack.value, stacks);
    if (event.kind != EventKind::kWait) return;
    ++waits;
    if ((event.flags & (kWakerUnknown | kWakerLost)) == 0) ++waits_with_waker;
  }

 private:
  static void Mark(uint32_t id, std::vector<bool>& marks) {
    if (id >= marks.size()) marks.resize(size_t{id} + id / 2 + 64);
    marks[id] = true;
  }
};

}  // namespace culprit::trace
