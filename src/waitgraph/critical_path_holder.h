// SPDX-License-Identifier: Apache-2.0
//
// HolderInference: who held the lock when a lock wait ended by timer or signal,
// which says nothing about it (SPEC §3). If the thread enters the same wait
// again, the waker of the last wait of the row counts. Else the next thread that
// wakes a waiter at the same site is taken, if it was neither idle nor queued at
// that site itself for most of the window, and the wait is marked as inferred.
// Else the holder is unknown.
//
// A site is the leaf-most frame outside the kernel and the C and C++ libraries,
// in processes of one name. Built once per trace in O(tiles + stacks) and, where
// such waits exist, O(lock waits × log); immutable afterwards. Keeps a reference
// to the Timelines.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "waitgraph/critical_path.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_class.h"

namespace culprit::waitgraph {

class HolderInference {
 public:
  explicit HolderInference(const Timelines& timelines);

  const StackClasses& classes() const { return classes_; }

  // A lock wait whose end says nothing about the holder.
  bool EndsUntold(EventIndex wait) const { return !untold_.empty() && untold_.contains(wait); }

  struct Holder {
    trace::ThreadId thread;  // none(): unknown
    int64_t release_ns = 0;  // when it woke somebody at last
    SegmentNote note = SegmentNote::kTimeoutUnknown;
  };
  // Of a wait that EndsUntold, clipped to [begin_ns, end_ns). The caller must not
  // take a holder that is already on its path.
  Holder HolderOf(EventIndex wait, int64_t begin_ns, int64_t end_ns) const;

 private:
  // Somebody was woken at a site by a thread.
  struct Release {
    uint32_t site = 0;
    uint32_t image = 0;
    int64_t time_ns = 0;
    trace::ThreadId waker;

    auto operator<=>(const Release&) const = default;
  };

  void MarkFrames();
  void MarkStacks();
  bool TellsNothing(EventIndex wait) const;
  void FindUntold();
  void FindReleases();
  uint32_t ImageOf(trace::ThreadId thread) const;
  bool WasBusy(trace::ThreadId thread, uint32_t site, int64_t begin_ns, int64_t end_ns) const;

  const Timelines& timelines_;
  StackClasses classes_;
  std::vector<bool> silent_device_;    // by ThreadId: a timer, or an interrupt of no known cause
  std::vector<bool> library_frame_;    // by FrameId: cannot be a site
  std::vector<bool> condition_frame_;  // by FrameId: waits for a condition, not for a lock
  std::vector<bool> signal_frame_;     // by FrameId: sends a signal
  std::vector<uint32_t> site_;         // by StackId: a FrameId, or UINT32_MAX
  std::vector<bool> condition_stack_;  // by StackId
  std::vector<bool> signal_stack_;     // by StackId
  std::unordered_map<EventIndex, EventIndex> untold_;  // to the last wait of the row, or kNoEvent
  std::vector<Release> releases_;                      // sorted
};

}  // namespace culprit::waitgraph
