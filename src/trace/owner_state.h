// SPDX-License-Identifier: Apache-2.0
//
// OwnerState: what encoder and decoder of a block expect of an owner's next
// event. Both advance it by the same events, so they always agree; this is the
// one place that knows the expectations. Times are unsigned and wrap, so no
// damaged input can overflow.
#pragma once

#include <cstdint>

#include "trace/event.h"

namespace culprit::trace {

constexpr uint32_t kNoId = UINT32_MAX;

// The thread an event is filed under, and the other one it names.
constexpr ThreadId OwnerOf(const Event& event) {
  return event.kind == EventKind::kUnwait ? event.peer : event.thread;
}
constexpr ThreadId OtherOf(const Event& event) {
  return event.kind == EventKind::kUnwait ? event.thread : event.peer;
}

struct OwnerState {
  uint64_t tile_end = 0;   // where the last tile ended
  uint64_t other_end = 0;  // the same for syscalls, calls, hardware, markers
  uint32_t stack = kNoId;  // of the last tile
  uint32_t other = kNoId;  // of the last wait or unwait
  uint16_t cpu = 0;

  explicit OwnerState(int64_t block_start_ns)
      : tile_end(static_cast<uint64_t>(block_start_ns)),
        other_end(static_cast<uint64_t>(block_start_ns)) {}

  uint64_t ExpectedTime(EventKind kind) const {
    return IsTile(kind) || kind == EventKind::kUnwait ? tile_end : other_end;
  }

  void Advance(const Event& event) {
    const uint64_t end = static_cast<uint64_t>(event.time_ns) + static_cast<uint64_t>(event.dur_ns);
    switch (event.kind) {
      case EventKind::kWait:
        other = event.peer.value;
        [[fallthrough]];
      case EventKind::kRunning:
      case EventKind::kReady:
        tile_end = end;
        stack = event.stack.value;
        cpu = event.cpu;
        break;
      case EventKind::kUnwait:
        other = event.thread.value;  // the waker's cpu says nothing about the owner's
        break;
      case EventKind::kHardware:
      case EventKind::kSyscall:
        other_end = end;
        cpu = event.cpu;
        break;
      case EventKind::kCall:
      case EventKind::kMarker:
        other_end = static_cast<uint64_t>(event.time_ns);
        cpu = event.cpu;
        break;
    }
  }
};

}  // namespace culprit::trace
