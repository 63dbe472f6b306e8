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
  EventKind tile = EventKind::kWait;  // the last one

  explicit OwnerState(int64_t block_start_ns)
      : tile_end(static_cast<uint64_t>(block_start_ns)),
        other_end(static_cast<uint64_t>(block_start_ns)) {}

  uint64_t ExpectedTime(EventKind kind) const {
    return IsTile(kind) || kind == EventKind::kUnwait ? tile_end : other_end;
  }

  // A run without a stack had no sample; who is ready after running lost the CPU.
  uint8_t ExpectedFlags(EventKind kind, uint32_t its_stack) const {
    const bool unsampled = kind == EventKind::kRunning && its_stack == kNoId;
    const bool preempted = kind == EventKind::kReady && tile == EventKind::kRunning;
    return static_cast<uint8_t>((unsampled ? kNotSampled : 0) | (preempted ? kPreempted : 0));
  }

  // Kinds follow each other as they like, so no branch on them would be foreseen:
  // each part is chosen instead.
  void Advance(const Event& event) {
    const EventKind kind = event.kind;
    const auto time = static_cast<uint64_t>(event.time_ns);
    const uint64_t end = time + static_cast<uint64_t>(event.dur_ns);
    const bool is_tile = IsTile(kind);
    const bool unwait = kind == EventKind::kUnwait;
    const bool lasts = kind == EventKind::kHardware || kind == EventKind::kSyscall;
    tile_end = is_tile ? end : tile_end;
    stack = is_tile ? event.stack.value : stack;
    const uint64_t nested_end = lasts ? end : time;  // calls and markers hold others
    other_end = is_tile || unwait ? other_end : nested_end;
    other = unwait || kind == EventKind::kWait ? OtherOf(event).value : other;
    tile = is_tile ? kind : tile;
    cpu = unwait ? cpu : event.cpu;  // the waker's says nothing about the owner's
  }
};

}  // namespace culprit::trace
