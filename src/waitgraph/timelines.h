// SPDX-License-Identifier: Apache-2.0
//
// Timelines: the events of one trace by thread, for walking wait chains. Tiles
// (running, wait, ready) of a thread abut and are in order of time (at one moment
// a wait of length zero before the ready before the running), so the tile at a
// moment is one binary search; unwaits stand apart, found by the wait they
// ended. Hardware events stand with the thread that asked for them and with the
// device that served them, in order of their ends. Where tiles overlap, as samples without switches
// or a damaged trace may, a tile ends where the next begins (TileEnd). Events without a thread
// belong to nobody.
//
// The trace may have its events in any order: what is found does not depend on it.
// Built once per trace in O(n log n), O(n) where the events come sorted by time, and
// fastest where they come by thread (EventOrder::kByThread of trace_reader.h);
// immutable afterwards, read by any number of threads. Keeps a reference to the
// trace, which must outlive it. About 32 bytes an event beside the trace itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace culprit::waitgraph {

using EventIndex = uint32_t;  // into Trace::events
inline constexpr EventIndex kNoEvent = UINT32_MAX;

class Timelines {
 public:
  explicit Timelines(const trace::Trace& trace);

  const trace::Trace& trace() const { return *trace_; }
  const trace::Event& event(EventIndex i) const { return trace_->events[i]; }
  // The canonical order of time (trace.h), whatever the order of Trace::events.
  bool IsBefore(EventIndex a, EventIndex b) const;

  // Running, wait and ready events of a thread, by time.
  std::span<const EventIndex> tiles(trace::ThreadId thread) const;
  // The begins of those tiles.
  std::span<const int64_t> begins_ns(trace::ThreadId thread) const;
  // Where those tiles end: their own end, or where the next one begins if that is
  // earlier.
  std::span<const int64_t> ends_ns(trace::ThreadId thread) const;
  // What else of those tiles a walk asks for; following indexes into the events
  // for it would miss the cache each time.
  struct Tile {
    trace::ThreadId peer;
    trace::EventKind kind = trace::EventKind::kRunning;
    uint8_t flags = 0;
    bool cut = false;  // ends_ns() is earlier than its own end
  };
  std::span<const Tile> facts(trace::ThreadId thread) const;
  // Those of all threads, one thread after the other; what is asked for by thread
  // is a part of it.
  std::span<const EventIndex> all_tiles() const { return {order_.get(), tiles_}; }
  std::span<const int64_t> all_begins_ns() const { return {begins_ns_.get(), tiles_}; }
  std::span<const int64_t> all_ends_ns() const { return {ends_ns_.get(), tiles_}; }
  std::span<const Tile> all_facts() const { return {facts_, tiles_}; }
  // By stack of the dictionary: how many running and wait events have it, of whatever
  // thread.
  std::span<const uint32_t> stack_uses() const { return stack_uses_; }
  // ends_ns() of the tile at this position of tiles(thread).
  int64_t TileEnd(trace::ThreadId thread, size_t position) const;
  // The positions in tiles(thread) that overlap [begin_ns, end_ns); a tile of
  // length zero at begin_ns counts as overlapping.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  Range TilesIn(trace::ThreadId thread, int64_t begin_ns, int64_t end_ns) const;
  // The positions in tiles(thread) that end in (after_ns, until_ns].
  Range TilesEndingIn(trace::ThreadId thread, int64_t after_ns, int64_t until_ns) const;
  // The unwait that ended a wait; kNoEvent if it is not in the trace.
  EventIndex UnwaitOf(EventIndex wait) const;
  // Hardware events served by this device, by end.
  std::span<const EventIndex> served(trace::ThreadId device) const;
  // Those of all devices, one device after the other; served() is a part of it.
  std::span<const EventIndex> all_served() const { return served_order_; }
  // Hardware events this thread asked for, by end.
  std::span<const EventIndex> asked(trace::ThreadId thread) const;
  // The request whose completion ended this wait: the last one to complete by
  // the wait's end and not before its begin, of those that the thread asked for,
  // else that a kernel thread did after the wait began (it dispatches for
  // others). kNoEvent if no device ended the wait or the trace does not tell.
  EventIndex ServiceOf(EventIndex wait) const;
  // Whether ServiceOf may find one for a wait that this thread ended.
  bool MayServe(trace::ThreadId waker) const {
    return waker.value < may_serve_.size() && may_serve_[waker.value];
  }

 private:
  template <class IndexAt>
  bool TakeThreads(size_t threads, IndexAt index_at);
  template <class IndexAt, class Own>
  size_t TakeThread(uint32_t slot, size_t at, IndexAt index_at, Own& own);
  template <class Own>
  void SortTiles(Own& own);
  template <class Own>
  void FinishThread(Own& own);
  template <class Unwait>
  void FindUnwaits(std::span<const uint32_t> waits, std::span<const Unwait> unwaits);
  void GroupAsked(size_t threads);
  void FindServers();
  bool Dispatches(trace::ThreadId thread) const;
  std::string_view NameOf(trace::ThreadId thread) const;
  std::string_view FamilyOf(trace::ThreadId device) const;
  bool Serves(EventIndex hardware, trace::ThreadId waker) const;

  const trace::Trace* trace_;
  // Columns of tiles, written once from front to back. Arrays where a vector would ask
  // for room at every tile.
  std::unique_ptr<EventIndex[]> order_;
  std::unique_ptr<int64_t[]> begins_ns_;
  std::unique_ptr<int64_t[]> ends_ns_;
  std::unique_ptr<std::byte[]> facts_bytes_;
  Tile* facts_ = nullptr;  // there
  size_t tiles_ = 0;
  std::vector<uint32_t> stack_uses_;
  std::vector<uint32_t> tile_ends_;
  std::vector<EventIndex> unwait_of_;
  std::vector<EventIndex> served_order_;
  std::vector<uint32_t> served_ends_;
  std::vector<EventIndex> asked_order_;
  std::vector<uint32_t> asked_ends_;
  std::vector<bool> may_serve_;          // by ThreadId of a device that wakes
  std::vector<EventIndex> completions_;  // hardware events of all devices, by end
};

}  // namespace culprit::waitgraph
