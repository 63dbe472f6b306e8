// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/timelines.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace culprit::waitgraph {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;

// At one moment a thread first blocks, then is woken, then runs.
constexpr std::array<uint8_t, trace::kEventKinds> kRank = {2, 0, 3, 1, 3, 3, 3, 3};

using Row = std::tuple<int64_t, int64_t, uint8_t, uint32_t>;

Row TileRow(const Event& e) {
  return {e.time_ns, e.dur_ns, kRank[static_cast<size_t>(e.kind)], e.stack.value};
}

Row HardwareRow(const Event& e) { return {e.end_ns(), e.time_ns, 0, e.stack.value}; }
Row UnwaitRow(const Event& e) { return {e.time_ns, e.thread.value, 0, e.stack.value}; }

// Event indexes grouped by an owner, and within a group in order of `row_of`,
// whose first part is carried along: following indexes into the events for every
// comparison would miss the cache each time.
struct Item {
  int64_t key_ns = 0;
  EventIndex index = kNoEvent;

  void Note(const Event& /*event*/) {}
};

// With what is asked of a tile later, read while its event is at hand.
struct TileItem : Item {
  Timelines::Tile tile;
  int64_t end_ns = 0;

  void Note(const Event& event) {
    tile = {.peer = event.peer, .kind = event.kind, .flags = event.flags};
    end_ns = event.end_ns();
  }
};

class Grouping {
 public:
  explicit Grouping(const trace::Trace& trace)
      : events_(trace.events), owners_(trace.dictionary.threads().size()) {}

  template <class ItemType = Item, class OwnerOf, class RowOf>
  std::vector<ItemType> Make(const std::vector<EventIndex>& from, OwnerOf owner_of, RowOf row_of,
                             std::vector<uint32_t>& ends) const {
    ends.assign(owners_ + 1, 0);
    for (const EventIndex i : from) {
      const ThreadId owner = owner_of(events_[i]);
      if (owner.value < owners_) ++ends[owner.value + 1];
    }
    for (size_t i = 1; i <= owners_; ++i) ends[i] += ends[i - 1];
    std::vector<ItemType> items(ends[owners_]);
    std::vector<uint32_t> next(ends.begin(), ends.end());
    for (const EventIndex i : from) {
      const ThreadId owner = owner_of(events_[i]);
      if (owner.value >= owners_) continue;
      ItemType& item = items[next[owner.value]++];
      item.key_ns = std::get<0>(row_of(events_[i]));
      item.index = i;
      item.Note(events_[i]);
    }
    for (size_t i = 0; i < owners_; ++i) {
      SortGroup(std::span(items).subspan(ends[i], ends[i + 1] - ends[i]), row_of);
    }
    return items;
  }

 private:
  // Traces come sorted by time, so that for tiles and unwaits only runs of equal
  // times are to be put in order; what is not sorted is sorted whole.
  template <class ItemType, class RowOf>
  void SortGroup(std::span<ItemType> group, RowOf row_of) const {
    const auto less = [&](const Item& a, const Item& b) {
      if (a.key_ns != b.key_ns) return a.key_ns < b.key_ns;
      const Row row_a = row_of(events_[a.index]);
      const Row row_b = row_of(events_[b.index]);
      return row_a != row_b ? row_a < row_b : a.index < b.index;
    };
    const auto earlier = [](const Item& a, const Item& b) { return a.key_ns < b.key_ns; };
    if (!std::is_sorted(group.begin(), group.end(), earlier)) {
      std::sort(group.begin(), group.end(), less);
      return;
    }
    for (size_t begin = 0; begin < group.size();) {
      size_t end = begin + 1;
      while (end < group.size() && group[begin].key_ns == group[end].key_ns) ++end;
      if (end - begin > 1) std::sort(group.begin() + begin, group.begin() + end, less);
      begin = end;
    }
  }

  const std::vector<Event>& events_;
  size_t owners_;
};

template <class ItemType>
std::vector<EventIndex> Indexes(const std::vector<ItemType>& items) {
  std::vector<EventIndex> indexes;
  indexes.reserve(items.size());
  for (const ItemType& item : items) indexes.push_back(item.index);
  return indexes;
}

template <class T>
std::span<const T> GroupOf(const std::vector<T>& order, const std::vector<uint32_t>& ends,
                           ThreadId owner) {
  if (!owner.valid() || owner.value + size_t{1} >= ends.size()) return {};
  return std::span(order).subspan(ends[owner.value], ends[owner.value + 1] - ends[owner.value]);
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

}  // namespace

Timelines::Timelines(const trace::Trace& trace) : trace_(&trace) {
  CULPRIT_CHECK(trace.events.size() < kNoEvent);
  std::vector<EventIndex> tiles;
  std::vector<EventIndex> unwaits;
  std::vector<EventIndex> hardware;
  for (EventIndex i = 0; i < trace.events.size(); ++i) {
    const EventKind kind = trace.events[i].kind;
    if (IsTile(kind)) tiles.push_back(i);
    if (kind == EventKind::kUnwait) unwaits.push_back(i);
    if (kind == EventKind::kHardware) hardware.push_back(i);
  }
  const auto thread_of = [](const Event& e) { return e.thread; };
  const auto peer_of = [](const Event& e) { return e.peer; };
  const Grouping grouping(trace);
  {
    const auto items = grouping.Make<TileItem>(tiles, thread_of, TileRow, tile_ends_);
    order_ = Indexes(items);
    begins_ns_.reserve(items.size());
    ends_ns_.reserve(items.size());
    facts_.reserve(items.size());
    for (const TileItem& item : items) {
      begins_ns_.push_back(item.key_ns);
      ends_ns_.push_back(item.end_ns);
      facts_.push_back(item.tile);
    }
  }
  CutOverlaps();
  served_order_ = Indexes(grouping.Make(hardware, thread_of, HardwareRow, served_ends_));
  asked_order_ = Indexes(grouping.Make(hardware, peer_of, HardwareRow, asked_ends_));
  completions_ = served_order_;
  std::sort(completions_.begin(), completions_.end(), [&](EventIndex a, EventIndex b) {
    return std::pair(event(a).end_ns(), a) < std::pair(event(b).end_ns(), b);
  });
  FindServers();
  std::vector<uint32_t> unwait_ends;
  const auto woken = grouping.Make(unwaits, peer_of, UnwaitRow, unwait_ends);
  const std::vector<EventIndex> unwait_order = Indexes(woken);
  unwait_of_.assign(trace.events.size(), kNoEvent);
  for (uint32_t t = 0; t < trace.dictionary.threads().size(); ++t) {
    FindUnwaits(t, GroupOf(unwait_order, unwait_ends, ThreadId(t)));
  }
}

void Timelines::CutOverlaps() {
  for (size_t t = 0; t + 1 < tile_ends_.size(); ++t) {
    for (size_t i = tile_ends_[t]; i + 1 < tile_ends_[t + 1]; ++i) {
      facts_[i].cut = begins_ns_[i + 1] < ends_ns_[i];
      ends_ns_[i] = std::min(ends_ns_[i], begins_ns_[i + 1]);
    }
  }
}

void Timelines::FindUnwaits(uint32_t thread, std::span<const EventIndex> unwaits) {
  const auto key_of = [&](EventIndex u) {
    return std::pair(event(u).time_ns, event(u).thread.value);
  };
  const auto less = [&](EventIndex u, const auto& key) { return key_of(u) < key; };
  auto at = unwaits.begin();
  for (size_t i = tile_ends_[thread]; i < tile_ends_[thread + 1]; ++i) {
    if (facts_[i].kind != EventKind::kWait || !facts_[i].peer.valid()) continue;
    const int64_t end_ns = facts_[i].cut ? event(order_[i]).end_ns() : ends_ns_[i];
    const std::pair key(end_ns, facts_[i].peer.value);
    // Mostly the next unwait is the one; else it is searched for, from the front
    // where tiles overlap and an end lies before the last.
    if (at != unwaits.begin() && key <= key_of(*(at - 1))) at = unwaits.begin();
    if (at != unwaits.end() && key_of(*at) < key) ++at;
    if (at != unwaits.end() && key_of(*at) < key)
      at = std::lower_bound(at, unwaits.end(), key, less);
    if (at != unwaits.end() && key_of(*at) == key) unwait_of_[order_[i]] = *at;
  }
}

std::span<const EventIndex> Timelines::tiles(ThreadId thread) const {
  return GroupOf(order_, tile_ends_, thread);
}
std::span<const int64_t> Timelines::begins_ns(ThreadId thread) const {
  return GroupOf(begins_ns_, tile_ends_, thread);
}

std::span<const int64_t> Timelines::ends_ns(ThreadId thread) const {
  return GroupOf(ends_ns_, tile_ends_, thread);
}
std::span<const Timelines::Tile> Timelines::facts(ThreadId thread) const {
  return GroupOf(facts_, tile_ends_, thread);
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
  return GroupOf(served_order_, served_ends_, device);
}
std::span<const EventIndex> Timelines::asked(ThreadId thread) const {
  return GroupOf(asked_order_, asked_ends_, thread);
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
