// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/timelines.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "trace/owner_state.h"

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;

// At one moment a thread first blocks, then is woken, then runs.
constexpr std::array<uint8_t, trace::kEventKinds> kRank = {2, 0, 3, 1, 3, 3, 3, 3};

// Orders that do not depend on where in Trace::events an event stands, except
// between events that are equal in all that anybody asks for.
using Row = std::tuple<int64_t, int64_t, uint8_t, uint32_t>;

Row TileRow(const Event& e) {
  return {e.time_ns, e.dur_ns, kRank[static_cast<size_t>(e.kind)], e.stack.value};
}
Row HardwareRow(const Event& e) { return {e.end_ns(), e.time_ns, 0, e.stack.value}; }
Row UnwaitRow(const Event& e) { return {e.time_ns, e.thread.value, 0, e.stack.value}; }

// What orders a thread's events, read while the event is at hand: following indexes
// for every comparison would miss the cache each time.
struct HardwareItem {
  int64_t key_ns = 0;
  EventIndex index = kNoEvent;
};
struct UnwaitItem {
  int64_t key_ns = 0;
  ThreadId waker;
  EventIndex index = kNoEvent;
};
struct TileItem {
  int64_t key_ns = 0;
  EventIndex index = kNoEvent;
};

// Groups mostly come sorted by time, so that only runs of equal times are to be put
// in order; what is not sorted is sorted whole.
template <class Item, class RowOf>
void SortGroup(const std::vector<Event>& events, std::span<Item> group, RowOf row_of) {
  const auto less = [&](const Item& a, const Item& b) {
    if (a.key_ns != b.key_ns) return a.key_ns < b.key_ns;
    const Event& event_a = events[a.index];
    const Event& event_b = events[b.index];
    const Row row_a = row_of(event_a);
    const Row row_b = row_of(event_b);
    if (row_a != row_b) return row_a < row_b;
    if (trace::ComesBefore(event_a, event_b)) return true;
    return !trace::ComesBefore(event_b, event_a) && a.index < b.index;
  };
  const auto earlier = [](const Item& a, const Item& b) { return a.key_ns < b.key_ns; };
  if (!std::is_sorted(group.begin(), group.end(), earlier)) {
    std::sort(group.begin(), group.end(), less);
    return;
  }
  for (size_t begin = 0; begin + 1 < group.size();) {
    size_t end = begin + 1;
    while (end < group.size() && group[begin].key_ns == group[end].key_ns) ++end;
    if (end - begin > 1) {
      std::sort(group.begin() + static_cast<ptrdiff_t>(begin),
                group.begin() + static_cast<ptrdiff_t>(end), less);
    }
    begin = end;
  }
}

template <class T>
std::span<const T> GroupOf(std::span<const T> order, const std::vector<uint32_t>& ends,
                           ThreadId owner) {
  if (!owner.valid() || owner.value + size_t{1} >= ends.size()) return {};
  return order.subspan(ends[owner.value], ends[owner.value + 1] - ends[owner.value]);
}

// The first position at or behind `from` whose value is one of the sought, which
// stand behind all others; near `from` mostly, so it is looked for in steps that
// double.
template <class Sought>
size_t FirstNear(std::span<const int64_t> values, size_t from, Sought sought) {
  size_t step = 1;
  while (from + step <= values.size() && !sought(values[from + step - 1])) {
    from += step;
    step *= 2;
  }
  const size_t end = std::min(values.size(), from + step);
  const auto it = std::partition_point(values.begin() + static_cast<ptrdiff_t>(from),
                                       values.begin() + static_cast<ptrdiff_t>(end),
                                       [&](int64_t value) { return !sought(value); });
  return static_cast<size_t>(it - values.begin());
}

// Of the thread at hand.
struct OwnEvents {
  std::vector<UnwaitItem> unwaits;  // that woke it
  std::vector<HardwareItem> served;
  std::vector<TileItem> tiles;
  std::vector<uint32_t> waits;  // where they stand among all tiles
  bool tiles_in_order = true;   // each begins after the one before it began
};

bool CountsForStack(const Event& event) {
  return (event.kind == EventKind::kRunning || event.kind == EventKind::kWait) &&
         event.stack.valid();
}

uint32_t SlotOf(const Event& event) { return trace::OwnerOf(event).value + 1; }  // none: 0

// Indexes of events by owner, those without one first.
std::vector<EventIndex> ByOwner(const std::vector<Event>& events, size_t threads) {
  const auto slot_of = [&](const Event& event) {
    return std::min<size_t>(SlotOf(event), threads + 1);
  };
  std::vector<uint32_t> next(threads + 3);
  for (const Event& event : events) ++next[slot_of(event) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<EventIndex> order(events.size());
  for (EventIndex i = 0; i < events.size(); ++i) order[next[slot_of(events[i])]++] = i;
  return order;
}

}  // namespace

// Where the trace has its events by thread they are read straight on, and what is
// made of a thread is made while its events are near. Whether it has is found out on
// the way, since looking first would mean to read them twice.
Timelines::Timelines(const trace::Trace& trace) : trace_(&trace) {
  CULPRIT_CHECK(trace.events.size() < kNoEvent);
  const size_t threads = trace.dictionary.threads().size();
  unwait_of_.assign(trace.events.size(), kNoEvent);
  order_ = std::make_unique_for_overwrite<EventIndex[]>(trace.events.size());
  begins_ns_ = std::make_unique_for_overwrite<int64_t[]>(trace.events.size());
  ends_ns_ = std::make_unique_for_overwrite<int64_t[]>(trace.events.size());
  // Tiles that an array of them would set to nothing first, which shows.
  static_assert(std::is_trivially_copyable_v<Tile> && alignof(Tile) <= alignof(std::max_align_t));
  facts_bytes_ = std::make_unique_for_overwrite<std::byte[]>(trace.events.size() * sizeof(Tile));
  facts_ = reinterpret_cast<Tile*>(facts_bytes_.get());
  if (!TakeThreads(threads, [](size_t at) { return static_cast<EventIndex>(at); })) {
    const std::vector<EventIndex> by_owner = ByOwner(trace.events, threads);
    const bool all = TakeThreads(threads, [&](size_t at) { return by_owner[at]; });
    CULPRIT_CHECK(all);
  }
  GroupAsked(threads);
  completions_ = served_order_;
  std::sort(completions_.begin(), completions_.end(), [&](EventIndex a, EventIndex b) {
    if (event(a).end_ns() != event(b).end_ns()) return event(a).end_ns() < event(b).end_ns();
    return IsBefore(a, b);
  });
  FindServers();
}

// The columns of tiles, written at their end. A copy of its own in every loop: what is
// reached through `this` would be read again after each store.
struct TileWriter {
  EventIndex* order;
  int64_t* begins_ns;
  int64_t* ends_ns;
  Timelines::Tile* facts;
  size_t first;  // of the thread at hand
  size_t at;
  bool in_order = true;

  // Whether the tile stands behind the last one for certain: it begins later, or the
  // last one has no length and it has some or is of a later kind.
  bool ComesNext(const Event& tile) const {
    const size_t last = at - 1;
    if (begins_ns[last] != tile.time_ns) return begins_ns[last] < tile.time_ns;
    const auto rank = [](EventKind kind) { return kRank[static_cast<size_t>(kind)]; };
    return ends_ns[last] == tile.time_ns &&
           (tile.dur_ns > 0 || (tile.dur_ns == 0 && rank(facts[last].kind) < rank(tile.kind)));
  }

  // The last tile ends where this one begins, if not before.
  void Add(const Event& tile, EventIndex i) {
    if (at != first) {
      in_order = in_order && ComesNext(tile);
      facts[at - 1].cut = tile.time_ns < ends_ns[at - 1];
      ends_ns[at - 1] = std::min(ends_ns[at - 1], tile.time_ns);
    }
    order[at] = i;
    begins_ns[at] = tile.time_ns;
    ends_ns[at] = tile.end_ns();
    // One by one: a tile that is put together first is copied by loads that wait for its stores.
    Timelines::Tile& fact = facts[at];
    fact.peer = tile.peer;
    fact.kind = tile.kind;
    fact.flags = tile.flags;
    fact.cut = false;
    ++at;
  }
};

// False, with nothing done that a second call would not do again, if the events do
// not come by owner.
template <class IndexAt>
bool Timelines::TakeThreads(size_t threads, IndexAt index_at) {
  tiles_ = 0;
  served_order_.clear();
  asked_order_.clear();
  tile_ends_.assign(1, 0);
  served_ends_.assign(1, 0);
  stack_uses_.assign(trace_->dictionary.stacks().size(), 0);
  const std::vector<Event>& events = trace_->events;
  OwnEvents own;
  size_t at = 0;
  // Slot 0 are events of nobody, as are those behind the last thread; they may still
  // have asked a device.
  const auto take_of_nobody = [&](EventIndex i) {
    const Event& e = events[i];
    if (e.kind == EventKind::kHardware) asked_order_.push_back(i);
    if (CountsForStack(e)) ++stack_uses_[e.stack.value];
  };
  for (; at < events.size() && SlotOf(events[index_at(at)]) == 0; ++at)
    take_of_nobody(index_at(at));
  for (uint32_t slot = 1; slot <= threads; ++slot) {
    at = TakeThread(slot, at, index_at, own);
    FinishThread(own);
  }
  for (; at < events.size(); ++at) {
    if (SlotOf(events[index_at(at)]) <= threads) return false;
    take_of_nobody(index_at(at));
  }
  return true;
}

// Takes the events from `at` on that are the thread's; where they end.
template <class IndexAt, class Own>
size_t Timelines::TakeThread(uint32_t slot, size_t at, IndexAt index_at, Own& own) {
  const std::span<const Event> events = trace_->events;
  uint32_t* const uses = stack_uses_.data();
  TileWriter tiles{order_.get(), begins_ns_.get(), ends_ns_.get(), facts_, tiles_, tiles_};
  for (; at < events.size(); ++at) {
    const EventIndex i = index_at(at);
    const Event& e = events[i];
    if (SlotOf(e) != slot) break;
    if (IsTile(e.kind)) {
      if (CountsForStack(e)) ++uses[e.stack.value];
      if (e.kind == EventKind::kWait) own.waits.push_back(static_cast<uint32_t>(tiles.at));
      tiles.Add(e, i);
    } else if (e.kind == EventKind::kUnwait) {
      own.unwaits.push_back({.key_ns = e.time_ns, .waker = e.thread, .index = i});
    } else if (e.kind == EventKind::kHardware) {
      asked_order_.push_back(i);
      own.served.push_back({.key_ns = e.end_ns(), .index = i});
    }
  }
  own.tiles_in_order = tiles.in_order;
  tiles_ = tiles.at;
  return at;
}

// Takes the tiles of the thread at hand once more, in order.
template <class Own>
void Timelines::SortTiles(Own& own) {
  const size_t begin = tile_ends_.back();
  own.tiles.clear();
  for (size_t i = begin; i < tiles_; ++i) {
    const Event& e = event(order_[i]);
    own.tiles.push_back({.key_ns = e.time_ns, .index = order_[i]});
  }
  SortGroup(trace_->events, std::span(own.tiles), TileRow);
  own.waits.clear();
  TileWriter tiles{order_.get(), begins_ns_.get(), ends_ns_.get(), facts_, begin, begin};
  for (const TileItem& item : own.tiles) {
    const Event& e = event(item.index);
    if (e.kind == EventKind::kWait) own.waits.push_back(static_cast<uint32_t>(tiles.at));
    tiles.Add(e, item.index);
  }
}

template <class Own>
void Timelines::FinishThread(Own& own) {
  if (!own.tiles_in_order) SortTiles(own);
  SortGroup(trace_->events, std::span(own.unwaits), UnwaitRow);
  FindUnwaits(own.waits, std::span<const UnwaitItem>(own.unwaits));
  SortGroup(trace_->events, std::span(own.served), HardwareRow);
  for (const HardwareItem& item : own.served) served_order_.push_back(item.index);
  tile_ends_.push_back(static_cast<uint32_t>(tiles_));
  served_ends_.push_back(static_cast<uint32_t>(served_order_.size()));
  own.waits.clear();
  own.unwaits.clear();
  own.served.clear();
  own.tiles_in_order = true;
}

void Timelines::GroupAsked(size_t threads) {
  std::erase_if(asked_order_, [&](EventIndex i) { return event(i).peer.value >= threads; });
  asked_ends_.assign(threads + 1, 0);
  for (const EventIndex i : asked_order_) ++asked_ends_[event(i).peer.value + 1];
  std::partial_sum(asked_ends_.begin(), asked_ends_.end(), asked_ends_.begin());
  std::sort(asked_order_.begin(), asked_order_.end(), [&](EventIndex a, EventIndex b) {
    if (event(a).peer != event(b).peer) return event(a).peer < event(b).peer;
    const Row row_a = HardwareRow(event(a));
    const Row row_b = HardwareRow(event(b));
    return row_a != row_b ? row_a < row_b : IsBefore(a, b);
  });
}

template <class Unwait>
void Timelines::FindUnwaits(std::span<const uint32_t> waits, std::span<const Unwait> unwaits) {
  const auto key_of = [](const Unwait& u) { return std::pair(u.key_ns, u.waker.value); };
  const auto less = [&](const Unwait& u, const auto& key) { return key_of(u) < key; };
  auto at = unwaits.begin();
  for (const uint32_t i : waits) {
    if (!facts_[i].peer.valid()) continue;
    const int64_t end_ns = facts_[i].cut ? event(order_[i]).end_ns() : ends_ns_[i];
    const std::pair key(end_ns, facts_[i].peer.value);
    // Mostly the next unwait is the one; else it is searched for, from the front
    // where tiles overlap and an end lies before the last.
    if (at != unwaits.begin() && key <= key_of(*(at - 1))) at = unwaits.begin();
    if (at != unwaits.end() && key_of(*at) < key) ++at;
    if (at != unwaits.end() && key_of(*at) < key)
      at = std::lower_bound(at, unwaits.end(), key, less);
    if (at != unwaits.end() && key_of(*at) == key) unwait_of_[order_[i]] = at->index;
  }
}

bool Timelines::IsBefore(EventIndex a, EventIndex b) const {
  if (trace::ComesBefore(event(a), event(b))) return true;
  return !trace::ComesBefore(event(b), event(a)) && a < b;
}

std::span<const EventIndex> Timelines::tiles(ThreadId thread) const {
  return GroupOf(all_tiles(), tile_ends_, thread);
}
std::span<const int64_t> Timelines::begins_ns(ThreadId thread) const {
  return GroupOf(all_begins_ns(), tile_ends_, thread);
}

std::span<const int64_t> Timelines::ends_ns(ThreadId thread) const {
  return GroupOf(all_ends_ns(), tile_ends_, thread);
}
std::span<const Timelines::Tile> Timelines::facts(ThreadId thread) const {
  return GroupOf(all_facts(), tile_ends_, thread);
}

int64_t Timelines::TileEnd(ThreadId thread, size_t position) const {
  return ends_ns(thread)[position];
}

Timelines::Range Timelines::TilesIn(ThreadId thread, int64_t begin_ns, int64_t end_ns) const {
  const std::span<const int64_t> begins = begins_ns(thread);
  const auto first = std::lower_bound(begins.begin(), begins.end(), begin_ns);
  Range range;
  range.begin = static_cast<size_t>(first - begins.begin());
  range.end = FirstNear(begins, range.begin, [&](int64_t b) { return b >= end_ns; });
  if (end_ns > begin_ns && range.begin > 0 && TileEnd(thread, range.begin - 1) > begin_ns) {
    --range.begin;
  }
  return range;
}

Timelines::Range Timelines::TilesEndingIn(ThreadId thread, int64_t after_ns,
                                          int64_t until_ns) const {
  const std::span<const int64_t> begins = begins_ns(thread);
  // Only the last to begin by then can end later than that.
  const auto without_open = [&](size_t from, size_t next, int64_t time_ns) {
    return next > from && TileEnd(thread, next - 1) > time_ns ? next - 1 : next;
  };
  const auto first = std::upper_bound(begins.begin(), begins.end(), after_ns);
  Range range;
  range.begin = without_open(0, static_cast<size_t>(first - begins.begin()), after_ns);
  const size_t next = FirstNear(begins, range.begin, [&](int64_t b) { return b > until_ns; });
  range.end = std::max(range.begin, without_open(range.begin, next, until_ns));
  return range;
}

std::span<const EventIndex> Timelines::served(ThreadId device) const {
  return GroupOf(std::span<const EventIndex>(served_order_), served_ends_, device);
}
std::span<const EventIndex> Timelines::asked(ThreadId thread) const {
  return GroupOf(std::span<const EventIndex>(asked_order_), asked_ends_, thread);
}

EventIndex Timelines::UnwaitOf(EventIndex wait) const {
  return wait < unwait_of_.size() ? unwait_of_[wait] : kNoEvent;
}

// A tracer that knows only that a disk woke somebody calls the device "[disk]",
// and those that serve "[disk 8:0]".
bool Timelines::Serves(EventIndex hardware, ThreadId waker) const {
  const ThreadId device = event(hardware).thread;
  if (device == waker) return true;
  if (!device.valid()) return false;
  const std::string_view family = FamilyOf(waker);
  return !family.empty() && NameOf(device).starts_with(family);
}

// Most devices that wake somebody (timers, networks) serve no requests, and
// their waits should not have to search.
void Timelines::FindServers() {
  const std::vector<trace::Thread>& threads = trace_->dictionary.threads();
  std::vector<std::string_view> names;
  for (size_t t = 0; t < threads.size(); ++t) {
    if (!served(ThreadId(t)).empty()) names.push_back(NameOf(ThreadId(t)));
  }
  std::sort(names.begin(), names.end());
  may_serve_.assign(threads.size(), false);
  for (size_t t = 0; t < threads.size(); ++t) {
    if (threads[t].kind != trace::ThreadKind::kDevice) continue;
    const std::string_view family = FamilyOf(ThreadId(t));
    const auto it = std::lower_bound(names.begin(), names.end(), family);
    may_serve_[t] = it != names.end() && it->starts_with(family);
  }
}

std::string_view Timelines::FamilyOf(ThreadId device) const {
  const std::string_view name = NameOf(device);
  return name.ends_with(']') ? name.substr(0, name.size() - 1) : name;
}

std::string_view Timelines::NameOf(ThreadId thread) const {
  return trace_->dictionary.Text(trace_->dictionary.threads()[thread.value].name);
}

// Text formats do not say which threads are the kernel's.
bool Timelines::Dispatches(ThreadId thread) const {
  return trace_->dictionary.threads()[thread.value].kind == trace::ThreadKind::kKernel ||
         NameOf(thread).starts_with("kworker/");
}

EventIndex Timelines::ServiceOf(EventIndex wait) const {
  // Completions shortly before the end of the wait; a thread with more in flight
  // than this is not waiting for one of them.
  constexpr size_t kLookBack = 32;
  const Event& w = event(wait);
  if (!MayServe(w.peer)) return kNoEvent;
  const auto latest = [&](std::span<const EventIndex> by_end, auto wanted) {
    const auto after = std::partition_point(by_end.begin(), by_end.end(), [&](EventIndex h) {
      return event(h).end_ns() <= w.end_ns();
    });
    const auto count = std::min<size_t>(kLookBack, after - by_end.begin());
    for (size_t back = 1; back <= count; ++back) {
      const EventIndex h = *(after - static_cast<ptrdiff_t>(back));
      if (event(h).end_ns() <= w.time_ns) break;
      if ((event(h).flags & trace::kUnfinished) == 0 && wanted(h)) return h;
    }
    return kNoEvent;
  };
  const EventIndex own = latest(asked(w.thread), [&](EventIndex h) { return Serves(h, w.peer); });
  if (own != kNoEvent) return own;
  return latest(completions_, [&](EventIndex h) {
    const ThreadId asker = event(h).peer;
    return asker.valid() && Dispatches(asker) && event(h).time_ns >= w.time_ns && Serves(h, w.peer);
  });
}

}  // namespace culprit::waitgraph
