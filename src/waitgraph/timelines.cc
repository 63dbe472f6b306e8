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
class Grouping {
 public:
  struct Item {
    int64_t key_ns = 0;
    EventIndex index = kNoEvent;
  };

  explicit Grouping(const trace::Trace& trace)
      : events_(trace.events), owners_(trace.dictionary.threads().size()) {}

  template <class OwnerOf, class RowOf>
  std::vector<Item> Make(const std::vector<EventIndex>& from, OwnerOf owner_of, RowOf row_of,
                         std::vector<uint32_t>& ends) const {
    ends.assign(owners_ + 1, 0);
    for (const EventIndex i : from) {
      const ThreadId owner = owner_of(events_[i]);
      if (owner.value < owners_) ++ends[owner.value + 1];
    }
    for (size_t i = 1; i <= owners_; ++i) ends[i] += ends[i - 1];
    std::vector<Item> items(ends[owners_]);
    std::vector<uint32_t> next(ends.begin(), ends.end());
    for (const EventIndex i : from) {
      const ThreadId owner = owner_of(events_[i]);
      if (owner.value >= owners_) continue;
      items[next[owner.value]++] = {std::get<0>(row_of(events_[i])), i};
    }
    for (size_t i = 0; i < owners_; ++i) {
      SortGroup(std::span(items).subspan(ends[i], ends[i + 1] - ends[i]), row_of);
    }
    return items;
  }

 private:
  // Traces come sorted by time, so that for tiles and unwaits only runs of equal
  // times are to be put in order; what is not sorted is sorted whole.
  template <class RowOf>
  void SortGroup(std::span<Item> group, RowOf row_of) const {
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

std::vector<EventIndex> Indexes(const std::vector<Grouping::Item>& items) {
  std::vector<EventIndex> indexes;
  indexes.reserve(items.size());
  for (const Grouping::Item& item : items) indexes.push_back(item.index);
  return indexes;
}

template <class T>
std::span<const T> GroupOf(const std::vector<T>& order, const std::vector<uint32_t>& ends,
                           ThreadId owner) {
  if (!owner.valid() || owner.value + size_t{1} >= ends.size()) return {};
  return std::span(order).subspan(ends[owner.value], ends[owner.value + 1] - ends[owner.value]);
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
  const auto items = grouping.Make(tiles, thread_of, TileRow, tile_ends_);
  order_ = Indexes(items);
  begins_ns_.reserve(items.size());
  for (const Grouping::Item& item : items) begins_ns_.push_back(item.key_ns);
  served_order_ = Indexes(grouping.Make(hardware, thread_of, HardwareRow, served_ends_));
  asked_order_ = Indexes(grouping.Make(hardware, peer_of, HardwareRow, asked_ends_));
  completions_ = served_order_;
  std::sort(completions_.begin(), completions_.end(), [&](EventIndex a, EventIndex b) {
    return std::pair(event(a).end_ns(), a) < std::pair(event(b).end_ns(), b);
  });
  FindServers();
  std::vector<uint32_t> unwait_ends;
  const auto woken = grouping.Make(unwaits, peer_of, UnwaitRow, unwait_ends);
  FindUnwaits(Indexes(woken), unwait_ends);
}

void Timelines::FindUnwaits(const std::vector<EventIndex>& order,
                            const std::vector<uint32_t>& ends) {
  unwait_of_.assign(trace_->events.size(), kNoEvent);
  const auto threads = static_cast<uint32_t>(trace_->dictionary.threads().size());
  for (uint32_t t = 0; t < threads; ++t) {
    const std::span<const EventIndex> unwaits = GroupOf(order, ends, ThreadId(t));
    const auto key_of = [&](EventIndex u) {
      return std::pair(event(u).time_ns, event(u).thread.value);
    };
    const auto less = [&](EventIndex u, const auto& key) { return key_of(u) < key; };
    auto at = unwaits.begin();
    for (const EventIndex i : tiles(ThreadId(t))) {
      const Event& wait = event(i);
      if (wait.kind != EventKind::kWait || !wait.peer.valid()) continue;
      const std::pair key(wait.end_ns(), wait.peer.value);
      // Mostly the next unwait is the one; else it is searched for, from the
      // front where tiles overlap and an end lies before the last.
      if (at != unwaits.begin() && key <= key_of(*(at - 1))) at = unwaits.begin();
      if (at != unwaits.end() && key_of(*at) < key) ++at;
      if (at != unwaits.end() && key_of(*at) < key)
        at = std::lower_bound(at, unwaits.end(), key, less);
      if (at != unwaits.end() && key_of(*at) == key) unwait_of_[i] = *at;
    }
  }
}

std::span<const EventIndex> Timelines::tiles(ThreadId thread) const {
  return GroupOf(order_, tile_ends_, thread);
}
std::span<const int64_t> Timelines::begins_ns(ThreadId thread) const {
  return GroupOf(begins_ns_, tile_ends_, thread);
}

int64_t Timelines::TileEnd(ThreadId thread, size_t position) const {
  const std::span<const int64_t> begins = begins_ns(thread);
  const int64_t end_ns = event(tiles(thread)[position]).end_ns();
  return position + 1 < begins.size() ? std::min(end_ns, begins[position + 1]) : end_ns;
}

Timelines::Range Timelines::TilesIn(ThreadId thread, int64_t begin_ns, int64_t end_ns) const {
  const std::span<const int64_t> begins = begins_ns(thread);
  const auto first_from = [&](size_t from, int64_t time_ns) {
    const auto it = std::lower_bound(begins.begin() + from, begins.end(), time_ns);
    return static_cast<size_t>(it - begins.begin());
  };
  Range range;
  range.begin = first_from(0, begin_ns);
  range.end = first_from(range.begin, end_ns);
  if (end_ns > begin_ns && range.begin > 0 && TileEnd(thread, range.begin - 1) > begin_ns) {
    --range.begin;
  }
  return range;
}

Timelines::Range Timelines::TilesEndingIn(ThreadId thread, int64_t after_ns,
                                          int64_t until_ns) const {
  const std::span<const int64_t> begins = begins_ns(thread);
  const auto first_after = [&](size_t from, int64_t time_ns) {
    // Only the last to begin by then can end later than that.
    const auto it = std::upper_bound(begins.begin() + from, begins.end(), time_ns);
    const auto next = static_cast<size_t>(it - begins.begin());
    return next > from && TileEnd(thread, next - 1) > time_ns ? next - 1 : next;
  };
  Range range;
  range.begin = first_after(0, after_ns);
  range.end = std::max(range.begin, first_after(range.begin, until_ns));
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
  const std::vector<trace::Thread>& threads = trace_->dictionary.threads();
  if (w.peer.value >= threads.size() || !may_serve_[w.peer.value]) return kNoEvent;
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
