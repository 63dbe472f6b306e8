// SPDX-License-Identifier: Apache-2.0
//
// CriticalPath: who owned every nanosecond of an instance (SPEC §3). The walk
// goes backwards from the end of each wait into the thread that ended it,
// clipped to the wait's own window, and so on. The result is a tree of segments
// in which the leaves (running, ready, hardware, unattributed) tile the
// instance exactly: the sum of the leaves is t1 - t0. A wait is an inner
// segment, its children tile it; a wait nobody explains has one leaf child of
// the unexplained rest. Inner waits are what wait mining counts (clipped
// length), leaves what CPU mining and conservation count. Segments of length
// zero are left out.
//
// All threads on the way down to a segment are blocked while it lasts, so at any
// moment a thread is on the path at most once: a path has at most one segment
// for each tile of the threads it touches within the instance, and two more for
// each wait. A convoy of k threads costs its last one 2k segments.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

enum class SegmentKind : uint8_t {
  kRunning,       // leaf: code of `thread`, sampled or not
  kReady,         // leaf: `thread` could run, `event`'s peer held the CPU
  kHardware,      // leaf: a device, timer or interrupt; `thread` is the device
  kUnattributed,  // leaf: nothing in the trace explains it
  kWait,          // inner: `thread` was blocked; its children tile it
};

// Why a leaf is unattributed, or how a wait's waker was settled.
enum class SegmentNote : uint8_t {
  kNone,
  kWakerUnknown,    // the wake-up is not in the trace
  kWakerLost,       // it fell into a hole of the recording
  kBeforeWaker,     // before the waker's first activity in the window
  kWakerAsleep,     // the waker itself slept unexplained
  kTimeoutUnknown,  // a lock wait ended by timer or signal, holder unknown
  kInferredHolder,  // wait: its holder was inferred, not recorded
  kQueueing,        // hardware: before the device took the request
  kCycle,           // the waker is already on the path
  kTooDeep,         // the chain or the path is longer than PathOptions allow
  kReentered,       // wait: ended by timer or signal and entered again; the waker
                    // of the last one counts
};
inline constexpr size_t kSegmentKinds = 5;
inline constexpr std::array<std::string_view, kSegmentKinds> kSegmentKindNames = {
    "running", "ready", "hardware", "unattributed", "wait"};
inline constexpr size_t kSegmentNotes = 11;
inline constexpr std::array<std::string_view, kSegmentNotes> kSegmentNoteNames = {
    "",
    "waker unknown",
    "waker lost",
    "before the waker",
    "waker asleep",
    "timeout: holder unknown",
    "inferred holder",
    "queueing",
    "cycle",
    "too deep",
    "waited again"};

constexpr std::string_view Name(SegmentKind kind) {
  return kSegmentKindNames[static_cast<size_t>(kind)];
}
// Empty for kNone.
constexpr std::string_view Name(SegmentNote note) {
  return kSegmentNoteNames[static_cast<size_t>(note)];
}

struct Segment {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  trace::ThreadId thread;
  // The tile or hardware event it is a part of. Of an unattributed leaf, and of
  // a hardware leaf whose request is not in the trace, the wait it explains.
  EventIndex event = kNoEvent;
  uint32_t parent = UINT32_MAX;  // the wait segment it explains; UINT32_MAX: of the initiator
  SegmentKind kind = SegmentKind::kUnattributed;
  SegmentNote note = SegmentNote::kNone;

  int64_t dur_ns() const { return end_ns - begin_ns; }
};

struct PathOptions {
  uint32_t max_depth = 1000;  // of nested waits; what lies deeper is unattributed
  // No further waits are looked into once a path has as many segments.
  uint32_t max_segments = 1 << 20;
};

// In pre-order, by time among siblings: a parent stands before its children.
struct CriticalPath {
  std::vector<Segment> segments;
};

// Finds paths in one trace; what is known about its waits (which lock waits ended
// by a timer or signal, who may have held the lock) is worked out when a path first
// meets them. Find() is near-linear in the length of the path. One thread
// at a time; the Timelines must outlive it.
class PathFinder {
 public:
  explicit PathFinder(const Timelines& timelines, const PathOptions& options = {});
  ~PathFinder();
  PathFinder(PathFinder&&) noexcept;

  // Replaces the segments of `path`, whose memory is used again.
  void Find(const trace::Instance& instance, CriticalPath& path);
  // Of the trace's stacks, which it has to find out anyhow.
  StackClassifier& classes();

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

// For a single path; for many, keep a PathFinder.
CriticalPath FindCriticalPath(const Timelines& timelines, const trace::Instance& instance,
                              const PathOptions& options = {});

}  // namespace culprit::waitgraph
