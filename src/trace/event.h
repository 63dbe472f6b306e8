// SPDX-License-Identifier: Apache-2.0
//
// Event: one record of a trace stream. Times are nanoseconds of the trace's
// own clock; an event covers [time_ns, time_ns + dur_ns).
//
// In a trace that has context switches, running, wait and ready events *tile*
// the life of a thread: each begins where the one before it ended, so on-CPU
// time is exact and nothing is lost between them. Samples only share out the
// on-CPU spans: each sample's stack owns the time from the previous cut to the
// sample, the last one of a span also the rest; a span without a sample is one
// running event with kNotSampled and no stack. Without switches, a running
// event is one sample and its duration the sampling period.
//
// What the fields mean by kind:
//
//   kind      thread        peer                 stack              arg0, arg1
//   running   who ran       -                    sampled            -
//   wait      who waited    who ended it         at switch-out      0, or a sum: of how many
//   unwait    the waker     the thread woken     the waker's        -
//   ready     who was ready who held the CPU     of the switch-out  -
//   hardware  the device    the requester        of the request     bytes, operation
//   syscall   the caller    -                    of the caller      PackCall(), result
//   call      the caller    -                    leaf: the function -
//   marker    the initiator -                    -                  name (StringId), id
//
// Devices, timers and interrupts are pseudo-threads of kind kDevice, so "woken
// by the disk" is an ordinary peer. The unwait that ended a wait w is the one
// with time w.time_ns + w.dur_ns, thread w.peer and peer w.thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace culprit::trace {

using ThreadId = Id<struct ThreadTag>;  // index in the trace's thread table, not a tid
using StackId = Id<struct StackTag>;

enum class EventKind : uint8_t {
  kRunning = 0,
  kWait = 1,
  kUnwait = 2,
  kReady = 3,
  kHardware = 4,
  kSyscall = 5,
  kCall = 6,
  kMarker = 7,
};
inline constexpr size_t kEventKinds = 8;
inline constexpr std::array<std::string_view, kEventKinds> kEventKindNames = {
    "running", "wait", "unwait", "ready", "hardware", "syscall", "call", "marker"};

constexpr std::string_view Name(EventKind kind) {
  return kEventKindNames[static_cast<size_t>(kind)];
}
// Kinds that tile the life of a thread in a trace with switches.
constexpr bool IsTile(EventKind kind) {
  return kind == EventKind::kRunning || kind == EventKind::kWait || kind == EventKind::kReady;
}

enum EventFlag : uint8_t {
  kNotSampled = 1 << 0,    // running: the span had no sample
  kPreempted = 1 << 1,     // ready: lost the CPU while runnable, did not wait
  kWakerUnknown = 1 << 2,  // wait: its wake-up is not in the trace
  kWakerLost = 1 << 3,     // wait: its wake-up fell into a hole of the recording
  kInferred = 1 << 4,      // this event was deduced, not recorded
  kUnfinished = 1 << 5,    // syscall, call, hardware: still open at the trace's end
  kBegin = 1 << 6,         // marker
  kEnd = 1 << 7,           // marker
};

struct Event {
  int64_t time_ns = 0;
  int64_t dur_ns = 0;
  ThreadId thread;
  ThreadId peer;
  StackId stack;
  uint16_t cpu = kNoCpu;
  EventKind kind = EventKind::kRunning;
  uint8_t flags = 0;
  int64_t arg0 = 0;
  int64_t arg1 = 0;

  static constexpr uint16_t kNoCpu = UINT16_MAX;

  int64_t end_ns() const { return time_ns + dur_ns; }
  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 48);

// A recorder left out many short waits, and knows what they were together. The stack is that
// of one of them.
constexpr bool IsSumOfWaits(const Event& event) {
  return event.kind == EventKind::kWait && event.arg0 > 0;
}

}  // namespace culprit::trace
