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
// in processes of one name. Everything is found out when it is asked for, since most
// traces have no such wait on any path: a question costs the stacks behind it once,
// the first one about a holder a pass over the events. Keeps a reference to the
// Timelines; one thread at a time.
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

  // Of the trace's stacks.
  StackClassifier& classes() { return classes_; }

  // Whether the wait at this position of tiles(thread) is a lock wait whose end says
  // nothing about the holder.
  bool EndsUntold(trace::ThreadId thread, size_t position);

  struct Holder {
    trace::ThreadId thread;  // none(): unknown
    int64_t release_ns = 0;  // when it woke somebody at last
    SegmentNote note = SegmentNote::kTimeoutUnknown;
  };
  // Of a wait that EndsUntold, clipped to [begin_ns, end_ns). The caller must not
  // take a holder that is already on its path.
  Holder HolderOf(trace::ThreadId thread, size_t position, int64_t begin_ns, int64_t end_ns);

 private:
  // Somebody was woken at a site by a thread.
  struct Release {
    uint32_t site = 0;
    uint32_t image = 0;
    int64_t time_ns = 0;
    trace::ThreadId waker;

    auto operator<=>(const Release&) const = default;
  };
  struct StackMarks {
    uint32_t site = UINT32_MAX;  // a FrameId, or UINT32_MAX
    bool condition = false;      // waits for a condition, not for a lock
    bool signal = false;         // sends a signal
    bool known = false;
  };

  StackMarks MarksOf(trace::StackId stack);
  StackMarks Below(const StackMarks& caller, uint32_t frame) const;
  bool TellsNothing(EventIndex wait);
  EventIndex LastOfRow(trace::ThreadId thread, size_t position);
  void FindReleases();
  uint32_t ImageOf(trace::ThreadId thread) const;
  bool WasBusy(trace::ThreadId thread, uint32_t site, int64_t begin_ns, int64_t end_ns);

  const Timelines& timelines_;
  StackClassifier classes_;
  std::vector<bool> silent_device_;   // by ThreadId: a timer, or an interrupt of no known cause
  std::vector<bool> library_module_;  // by ModuleId: its frames cannot be sites
  std::vector<StackMarks> marks_;     // by StackId
  std::vector<uint32_t> unmarked_;    // stacks on the way to one that is known
  std::unordered_map<EventIndex, EventIndex> last_of_row_;  // of untold waits; kNoEvent: none
  bool releases_known_ = false;
  std::vector<Release> releases_;  // sorted
};

}  // namespace culprit::waitgraph
