// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/wait_graph.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace culprit::waitgraph {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

WaitGraphBuilder::WaitGraphBuilder(const Timelines& timelines)
    : timelines_(timelines),
      children_(timelines.all_tiles().size()),
      next_(timelines.all_tiles().size() + timelines.all_served().size() + 1),
      visited_(next_.size() / 64 + 1) {
  std::iota(next_.begin(), next_.end(), Slot{0});
}

EventIndex WaitGraphBuilder::EventAt(Slot slot) const {
  const size_t tiles = timelines_.all_tiles().size();
  return slot < tiles ? timelines_.all_tiles()[slot] : timelines_.all_served()[slot - tiles];
}

int64_t WaitGraphBuilder::BeginAt(Slot slot) const {
  const std::span<const int64_t> begins = timelines_.all_begins_ns();
  return slot < begins.size() ? begins[slot] : timelines_.event(EventAt(slot)).time_ns;
}

int64_t WaitGraphBuilder::EndAt(Slot slot) const {
  const std::span<const Timelines::Tile> facts = timelines_.all_facts();
  if (slot < facts.size() && !facts[slot].cut) return timelines_.all_ends_ns()[slot];
  return timelines_.event(EventAt(slot)).end_ns();
}

// Waits that overlap in time ask for overlapping ranges; what was visited must
// not be walked over again, or a convoy would cost its square. So visited slots
// form chains to the next unvisited one, halved on each use.
WaitGraphBuilder::Slot WaitGraphBuilder::Unvisited(Slot slot) {
  while (next_[slot] != slot) {
    next_[slot] = next_[next_[slot]];
    slot = next_[slot];
  }
  return slot;
}

void WaitGraphBuilder::Visit(Slot begin, Slot end, uint32_t found_by) {
  for (Slot slot = Unvisited(begin); slot < end; slot = Unvisited(slot)) {
    next_[slot] = slot + 1;
    visited_[slot / 64] |= uint64_t{1} << (slot % 64);
    found_.push_back({.slot = slot, .found_by = found_by, .children = {0, 0}});
  }
}

WaitGraphBuilder::Children WaitGraphBuilder::FindChildren(Slot slot, int64_t after_ns,
                                                          int64_t until_ns) const {
  const Timelines::Tile& wait = timelines_.all_facts()[slot];
  if (wait.kind != EventKind::kWait || !wait.peer.valid()) return {0, 0};
  const auto& threads = timelines_.trace().dictionary.threads();
  if (threads[wait.peer.value].kind != ThreadKind::kDevice) {
    const Timelines::Range range = timelines_.TilesEndingIn(wait.peer, after_ns, until_ns);
    const auto first =
        static_cast<Slot>(timelines_.tiles(wait.peer).data() - timelines_.all_tiles().data());
    return {first + static_cast<Slot>(range.begin), first + static_cast<Slot>(range.end)};
  }
  ThreadId device = wait.peer;
  if (timelines_.served(device).empty()) {
    if (!timelines_.MayServe(device)) return {0, 0};
    const EventIndex service = timelines_.ServiceOf(EventAt(slot));
    if (service == kNoEvent) return {0, 0};
    device = timelines_.event(service).thread;
  }
  const std::span<const EventIndex> served = timelines_.served(device);
  const auto first_after = [&](int64_t time_ns) {
    return std::partition_point(served.begin(), served.end(), [&](EventIndex h) {
      return timelines_.event(h).end_ns() <= time_ns;
    });
  };
  const auto first = static_cast<Slot>(timelines_.all_tiles().size() +
                                       (served.data() - timelines_.all_served().data()));
  const Slot begin = first + static_cast<Slot>(first_after(after_ns) - served.begin());
  const Slot end = first + static_cast<Slot>(first_after(until_ns) - served.begin());
  return {begin, std::max(begin, end)};
}

WaitGraphBuilder::Children WaitGraphBuilder::ChildrenOf(Slot slot) {
  if (slot >= children_.size()) return {0, 0};
  const int64_t begin_ns = BeginAt(slot);
  const int64_t end_ns = EndAt(slot);
  if (begin_ns < t0_ns_ || end_ns > t1_ns_) {
    return FindChildren(slot, std::max(begin_ns, t0_ns_), std::min(end_ns, t1_ns_));
  }
  Children& children = children_[slot];
  if (children.begin == UINT32_MAX) children = FindChildren(slot, begin_ns, end_ns);
  return children;
}

// Of many, the bits say the order; they are cleared in any case.
void WaitGraphBuilder::SortSlots() {
  constexpr size_t kWordsPerSlot = 8;
  slots_.clear();
  if (found_.size() * kWordsPerSlot < visited_.size()) {
    for (const Found& found : found_) {
      slots_.push_back(found.slot);
      visited_[found.slot / 64] = 0;
    }
    std::sort(slots_.begin(), slots_.end());
    return;
  }
  slots_.reserve(found_.size());
  for (size_t w = 0; w < visited_.size(); ++w) {
    for (uint64_t bits = visited_[w]; bits != 0; bits &= bits - 1) {
      slots_.push_back(static_cast<Slot>(w * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
    visited_[w] = 0;
  }
}

void WaitGraphBuilder::Build(const trace::Instance& instance, WaitGraph& graph) {
  graph.nodes.clear();
  graph.breadth_first.clear();
  graph.roots_begin = graph.roots_end = 0;
  found_.clear();
  t0_ns_ = instance.t0_ns;
  t1_ns_ = instance.t1_ns;
  if (t1_ns_ <= t0_ns_ || timelines_.tiles(instance.thread).empty()) return;
  const Timelines::Range range = timelines_.TilesIn(instance.thread, t0_ns_, t1_ns_);
  const auto first =
      static_cast<Slot>(timelines_.tiles(instance.thread).data() - timelines_.all_tiles().data());
  const Slot roots_begin = first + static_cast<Slot>(range.begin);
  Visit(roots_begin, first + static_cast<Slot>(range.end), UINT32_MAX);
  const size_t roots = found_.size();
  for (uint32_t i = 0; i < found_.size(); ++i) {
    const Children children = ChildrenOf(found_[i].slot);
    found_[i].children = children;
    Visit(children.begin, children.end, i);
  }
  SortSlots();
  // The chains are done with: they say first when a slot was found, and then
  // until the end which node it is.
  for (uint32_t i = 0; i < found_.size(); ++i) next_[found_[i].slot] = i;
  graph.breadth_first.resize(found_.size());
  graph.nodes.resize(found_.size());
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    graph.breadth_first[next_[slots_[i]]] = i;
    next_[slots_[i]] = i;
  }
  Write(graph);
  if (roots > 0) graph.roots_begin = next_[roots_begin];
  graph.roots_end = graph.roots_begin + static_cast<uint32_t>(roots);
  for (const Slot slot : slots_) next_[slot] = slot;
}

void WaitGraphBuilder::Write(WaitGraph& graph) const {
  for (uint32_t order = 0; order < found_.size(); ++order) {
    const Found& found = found_[order];
    GraphNode& node = graph.nodes[graph.breadth_first[order]];
    node = {};
    node.event = EventAt(found.slot);
    node.begin_ns = std::clamp(BeginAt(found.slot), t0_ns_, t1_ns_);
    node.end_ns = std::clamp(EndAt(found.slot), t0_ns_, t1_ns_);
    if (found.found_by != UINT32_MAX) node.found_by = graph.breadth_first[found.found_by];
    if (found.children.end > found.children.begin) {
      node.children_begin = next_[found.children.begin];
      node.children_end = node.children_begin + (found.children.end - found.children.begin);
    }
  }
}

WaitGraph BuildWaitGraph(const Timelines& timelines, const trace::Instance& instance) {
  WaitGraph graph;
  WaitGraphBuilder(timelines).Build(instance, graph);
  return graph;
}

}  // namespace culprit::waitgraph
