// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/critical_path.h"

#include <algorithm>

#include "waitgraph/critical_path_holder.h"

namespace culprit::waitgraph {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

// A stack of its own instead of recursion: chains are as long as the input says.
class PathFinder::Walk {
 public:
  Walk(const Timelines& timelines, const PathOptions& options)
      : timelines_(timelines),
        options_(options),
        holders_(timelines),
        on_path_(timelines.trace().dictionary.threads().size(), false) {}

  void Run(const trace::Instance& instance, std::vector<Segment>& segments) {
    segments_ = &segments;
    segments.clear();
    if (instance.t1_ns <= instance.t0_ns) return;
    if (instance.thread.value >= on_path_.size()) {
      Add(SegmentKind::kUnattributed, SegmentNote::kNone, instance.thread, kNoEvent, instance.t0_ns,
          instance.t1_ns, UINT32_MAX);
      return;
    }
    Enter(instance.thread, instance.t0_ns, instance.t1_ns, INT64_MAX, UINT32_MAX);
    while (!levels_.empty()) Step();
  }

  StackClassifier& classes() { return holders_.classes(); }

 private:
  // One thread within the window of the wait it explains.
  struct Level {
    ThreadId thread;
    std::span<const EventIndex> tiles;
    std::span<const int64_t> begins_ns;
    std::span<const int64_t> ends_ns;
    std::span<const Timelines::Tile> facts;
    size_t next = 0;
    size_t end = 0;
    int64_t cursor_ns = 0;  // everything before is owned
    int64_t end_ns = 0;
    int64_t release_ns = 0;  // when the thread ended the wait; waits of its own end before
    uint32_t parent = UINT32_MAX;
    bool active = false;  // has been seen in the window
  };

  void Enter(ThreadId thread, int64_t begin_ns, int64_t end_ns, int64_t release_ns,
             uint32_t parent) {
    const Timelines::Range range = timelines_.TilesIn(thread, begin_ns, end_ns);
    on_path_[thread.value] = true;
    levels_.push_back({.thread = thread,
                       .tiles = timelines_.tiles(thread),
                       .begins_ns = timelines_.begins_ns(thread),
                       .ends_ns = timelines_.ends_ns(thread),
                       .facts = timelines_.facts(thread),
                       .next = range.begin,
                       .end = range.end,
                       .cursor_ns = begin_ns,
                       .end_ns = end_ns,
                       .release_ns = release_ns,
                       .parent = parent});
  }

  void Step() {
    Level& level = levels_.back();
    if (level.next == level.end) {
      FillGap(level, level.end_ns);
      on_path_[level.thread.value] = false;
      levels_.pop_back();
      return;
    }
    const size_t position = level.next++;
    const int64_t begin_ns = std::max(level.begins_ns[position], level.cursor_ns);
    const int64_t end_ns = std::min(level.ends_ns[position], level.end_ns);
    if (end_ns <= begin_ns) return;
    FillGap(level, begin_ns);
    level.cursor_ns = end_ns;
    level.active = true;
    const EventIndex index = level.tiles[position];
    const EventKind kind = level.facts[position].kind;
    if (kind == EventKind::kWait) {
      Wait(position, begin_ns, end_ns);
    } else {
      Add(kind == EventKind::kReady ? SegmentKind::kReady : SegmentKind::kRunning,
          SegmentNote::kNone, level.thread, index, begin_ns, end_ns, level.parent);
    }
  }

  void FillGap(Level& level, int64_t until_ns) {
    if (until_ns <= level.cursor_ns) return;
    const bool before_waker = level.parent != UINT32_MAX && !level.active;
    const EventIndex explains =
        level.parent == UINT32_MAX ? kNoEvent : (*segments_)[level.parent].event;
    Add(SegmentKind::kUnattributed, before_waker ? SegmentNote::kBeforeWaker : SegmentNote::kNone,
        level.thread, explains, level.cursor_ns, until_ns, level.parent);
    level.cursor_ns = until_ns;
  }

  // A wait of the thread on top: its segment, and what explains it.
  void Wait(size_t position, int64_t begin_ns, int64_t end_ns) {
    const Level& level = levels_.back();
    const ThreadId thread = level.thread;
    const EventIndex index = level.tiles[position];
    const auto segment = static_cast<uint32_t>(segments_->size());
    Add(SegmentKind::kWait, SegmentNote::kNone, thread, index, begin_ns, end_ns, level.parent);
    HolderInference::Holder waker;
    const SegmentNote unexplained = Settle(level, position, begin_ns, end_ns, waker);
    if (unexplained != SegmentNote::kNone) {
      Add(SegmentKind::kUnattributed, unexplained, thread, index, begin_ns, end_ns, segment);
    } else if (IsDevice(waker.thread)) {
      Device(waker.thread, index, begin_ns, end_ns, segment);
    } else {
      (*segments_)[segment].note = waker.note;
      Enter(waker.thread, begin_ns, end_ns, waker.release_ns, segment);
    }
  }

  bool IsDevice(ThreadId thread) const {
    const ThreadKind kind = timelines_.trace().dictionary.threads()[thread.value].kind;
    return kind == ThreadKind::kDevice || kind == ThreadKind::kIdle;
  }

  // Who is to explain a wait; or else why nobody is, which is not kNone.
  SegmentNote Settle(const Level& level, size_t position, int64_t begin_ns, int64_t end_ns,
                     HolderInference::Holder& waker) {
    const EventIndex index = level.tiles[position];
    const Timelines::Tile& wait = level.facts[position];
    if (!wait.peer.valid() || (wait.flags & (trace::kWakerUnknown | trace::kWakerLost)) != 0) {
      if (level.parent != UINT32_MAX) return SegmentNote::kWakerAsleep;
      const bool lost = (wait.flags & trace::kWakerLost) != 0;
      return lost ? SegmentNote::kWakerLost : SegmentNote::kWakerUnknown;
    }
    // Who woke the waker later cannot have to do with what it did earlier.
    const int64_t woken_ns = wait.cut ? timelines_.event(index).end_ns() : level.ends_ns[position];
    if (woken_ns > level.release_ns) return SegmentNote::kWakerAsleep;
    if (holders_.EndsUntold(level.thread, position)) {
      waker = holders_.HolderOf(level.thread, position, begin_ns, end_ns);
      const bool known = waker.thread.valid() && !IsDevice(waker.thread);
      if (!known || on_path_[waker.thread.value]) return SegmentNote::kTimeoutUnknown;
    } else {
      waker = {.thread = wait.peer, .release_ns = woken_ns, .note = SegmentNote::kNone};
      if (IsDevice(waker.thread)) return SegmentNote::kNone;
      if (on_path_[waker.thread.value]) return SegmentNote::kCycle;
    }
    const bool too_deep =
        levels_.size() > options_.max_depth || segments_->size() >= options_.max_segments;
    return too_deep ? SegmentNote::kTooDeep : SegmentNote::kNone;
  }

  void Device(ThreadId waker, EventIndex index, int64_t begin_ns, int64_t end_ns,
              uint32_t segment) {
    const EventIndex service = timelines_.MayServe(waker) ? timelines_.ServiceOf(index) : kNoEvent;
    ThreadId device = waker;
    EventIndex part_of = index;
    int64_t issue_ns = begin_ns;
    if (service != kNoEvent) {
      device = timelines_.event(service).thread;
      part_of = service;
      issue_ns = std::clamp(timelines_.event(service).time_ns, begin_ns, end_ns);
    }
    if (issue_ns > begin_ns) {
      Add(SegmentKind::kHardware, SegmentNote::kQueueing, device, part_of, begin_ns, issue_ns,
          segment);
    }
    if (end_ns > issue_ns) {
      Add(SegmentKind::kHardware, SegmentNote::kNone, device, part_of, issue_ns, end_ns, segment);
    }
  }

  void Add(SegmentKind kind, SegmentNote note, ThreadId thread, EventIndex event, int64_t begin_ns,
           int64_t end_ns, uint32_t parent) {
    segments_->push_back({.begin_ns = begin_ns,
                          .end_ns = end_ns,
                          .thread = thread,
                          .event = event,
                          .parent = parent,
                          .kind = kind,
                          .note = note});
  }

  const Timelines& timelines_;
  PathOptions options_;
  HolderInference holders_;
  std::vector<bool> on_path_;
  std::vector<Level> levels_;
  std::vector<Segment>* segments_ = nullptr;
};

PathFinder::PathFinder(const Timelines& timelines, const PathOptions& options)
    : walk_(std::make_unique<Walk>(timelines, options)) {}
PathFinder::~PathFinder() = default;
PathFinder::PathFinder(PathFinder&&) noexcept = default;

void PathFinder::Find(const trace::Instance& instance, CriticalPath& path) {
  walk_->Run(instance, path.segments);
}

StackClassifier& PathFinder::classes() { return walk_->classes(); }

CriticalPath FindCriticalPath(const Timelines& timelines, const trace::Instance& instance,
                              const PathOptions& options) {
  CriticalPath path;
  PathFinder(timelines, options).Find(instance, path);
  return path;
}

}  // namespace culprit::waitgraph
