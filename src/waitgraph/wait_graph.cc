// SPDX-License-Identifier: Apache-2.0
#include "waitgraph/wait_graph.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace culprit::waitgraph {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;

WaitGraphBuilder::WaitGraphBuilder(const Timelines& timelines)
    : timelines_(timelines),
      next_(timelines.all_tiles().size() + timelines.all_served().size() + 1) {
  std::iota(next_.begin(), next_.end(), Slot{0});
}

EventIndex WaitGraphBuilder::EventAt(Slot slot) const {
  const size_t tiles = timelines_.all_tiles().size();
  return slot < tiles ? timelines_.all_tiles()[slot] : timelines_.all_served()[slot - tiles];
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
    const auto order = static_cast<uint32_t>(found_.size());
    found_.push_back({.slot = slot, .order = order, .found_by = found_by});
  }
}

void WaitGraphBuilder::Children(Found& found) {
  const EventIndex index = EventAt(found.slot);
  const Event& wait = timelines_.event(index);
  if (wait.kind != EventKind::kWait || !wait.peer.valid()) return;
  const int64_t after_ns = std::max(wait.time_ns, t0_ns_);
  const int64_t until_ns = std::min(wait.end_ns(), t1_ns_);
  const auto& threads = timelines_.trace().dictionary.threads();
  if (threads[wait.peer.value].kind != ThreadKind::kDevice) {
    const Timelines::Range range = timelines_.TilesEndingIn(wait.peer, after_ns, until_ns);
    const auto first =
        static_cast<Slot>(timelines_.tiles(wait.peer).data() - timelines_.all_tiles().data());
    found.children_begin = first + static_cast<Slot>(range.begin);
    found.children_end = first + static_cast<Slot>(range.end);
    return;
  }
  ThreadId device = wait.peer;
  if (timelines_.served(device).empty()) {
    const EventIndex service = timelines_.ServiceOf(index);
    if (service == kNoEvent) return;
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
  found.children_begin = first + static_cast<Slot>(first_after(after_ns) - served.begin());
  found.children_end = std::max(found.children_begin,
                                first + static_cast<Slot>(first_after(until_ns) - served.begin()));
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
    Children(found_[i]);
    const Found found = found_[i];
    Visit(found.children_begin, found.children_end, i);
  }
  std::sort(found_.begin(), found_.end(),
            [](const Found& a, const Found& b) { return a.slot < b.slot; });
  // The chains are done with: until the end they say which node a slot is.
  for (uint32_t i = 0; i < found_.size(); ++i) next_[found_[i].slot] = i;
  Write(graph);
  if (roots > 0) graph.roots_begin = next_[roots_begin];
  graph.roots_end = graph.roots_begin + static_cast<uint32_t>(roots);
  for (const Found& found : found_) next_[found.slot] = found.slot;
}

void WaitGraphBuilder::Write(WaitGraph& graph) const {
  graph.breadth_first.resize(found_.size());
  for (uint32_t i = 0; i < found_.size(); ++i) graph.breadth_first[found_[i].order] = i;
  graph.nodes.reserve(found_.size());
  for (const Found& found : found_) {
    GraphNode node;
    node.event = EventAt(found.slot);
    const Event& event = timelines_.event(node.event);
    node.begin_ns = std::clamp(event.time_ns, t0_ns_, t1_ns_);
    node.end_ns = std::clamp(event.end_ns(), t0_ns_, t1_ns_);
    if (found.found_by != UINT32_MAX) node.found_by = graph.breadth_first[found.found_by];
    if (found.children_end > found.children_begin) {
      node.children_begin = next_[found.children_begin];
      node.children_end = node.children_begin + (found.children_end - found.children_begin);
    }
    graph.nodes.push_back(node);
  }
}

WaitGraph BuildWaitGraph(const Timelines& timelines, const trace::Instance& instance) {
  WaitGraph graph;
  WaitGraphBuilder(timelines).Build(instance, graph);
  return graph;
}

}  // namespace culprit::waitgraph
