// SPDX-License-Identifier: Apache-2.0
#include "causality/top_level.h"

#include <algorithm>
#include <tuple>

namespace culprit::causality {

using trace::Event;
using trace::EventKind;
using waitgraph::GraphNode;
using waitgraph::WaitGraph;

TopLevelWaits::TopLevelWaits(const waitgraph::Timelines& timelines, ComponentTable& components,
                             const std::vector<bool>& idle, SetTable& sets)
    : timelines_(timelines),
      components_(components),
      idle_(idle),
      sets_(sets),
      readiers_(timelines.trace().dictionary.threads().size()) {}

void TopLevelWaits::RankWaits(const WaitGraph& graph) {
  const auto nodes = static_cast<uint32_t>(graph.nodes.size());
  order_.resize(nodes);
  for (uint32_t i = 0; i < nodes; ++i) order_[graph.breadth_first[i]] = i;
  rank_.assign(nodes, kNoRank);
  passed_.assign(nodes, kUnreached);
  own_.resize(nodes);
  ranked_.clear();
  for (uint32_t i = 0; i < nodes; ++i) {
    const waitgraph::EventIndex index = graph.nodes[i].event;
    const Event& event = timelines_.event(index);
    if (event.kind != EventKind::kWait || (!idle_.empty() && idle_[index])) continue;
    own_[i] = components_.ComponentsOf(event.stack, event.thread);
    ranked_.push_back({event.end_ns(), order_[i], i});
  }
  std::sort(ranked_.begin(), ranked_.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(b.end_ns, a.order) < std::tie(a.end_ns, b.order);
  });
  waits_.clear();
  for (const Ranked& ranked : ranked_) {
    rank_[ranked.node] = static_cast<uint32_t>(waits_.size());
    waits_.push_back(ranked.node);
  }
}

void TopLevelWaits::Find(const WaitGraph& graph, int64_t t1_ns) {
  for (const uint32_t thread : used_) {
    Readier& readier = readiers_[thread];
    readier.all.clear();
    readier.active.clear();
    readier.sets.clear();
    readier.last_node = UINT32_MAX;
    readier.meet_known = false;
  }
  used_.clear();
  RankWaits(graph);
  for (const Ranked& ranked : ranked_) {
    const uint32_t i = ranked.node;
    const GraphNode& node = graph.nodes[i];
    const bool root = i >= graph.roots_begin && i < graph.roots_end;
    Readier& readier = readiers_[timelines_.event(node.event).thread.value];
    passed_[i] = root ? kEmptySet : PassedBy(i, readier, ranked.end_ns <= t1_ns);
    if (passed_[i] == kUnreached || node.children_begin == node.children_end) continue;
    AddParent(node, sets_.Union(passed_[i], own_[i]));
  }
}

void TopLevelWaits::AddParent(const GraphNode& wait, SetId below) {
  const Event& event = timelines_.event(wait.event);
  Readier& readier = readiers_[event.peer.value];
  if (readier.all.empty()) used_.push_back(event.peer.value);
  const Parent parent = {wait.children_begin, wait.children_end, below};
  readier.all.push_back(parent);
  readier.active.push_back(parent);
  std::push_heap(readier.active.begin(), readier.active.end(),
                 [](const Parent& a, const Parent& b) { return a.begin < b.begin; });
  for (ActiveSet& set : readier.sets) {
    if (set.below != below) continue;
    ++set.count;
    return;
  }
  readier.sets.push_back({below, 1});
  if (readier.meet_known) {
    readier.meet = readier.meet == kUnreached ? below : sets_.Intersection(readier.meet, below);
  }
}

// By rank the waits of one thread come latest first, so a range whose begin lies
// behind the node is done with for good. False records can break that order; then
// every range is looked at.
SetId TopLevelWaits::PassedBy(uint32_t node, Readier& readier, bool in_order) {
  if (!in_order || node >= readier.last_node) return PassedByScan(node, readier);
  readier.last_node = node;
  const auto later = [](const Parent& a, const Parent& b) { return a.begin < b.begin; };
  while (!readier.active.empty() && readier.active.front().begin > node) {
    const SetId below = readier.active.front().below;
    std::pop_heap(readier.active.begin(), readier.active.end(), later);
    readier.active.pop_back();
    const auto set = std::find_if(readier.sets.begin(), readier.sets.end(),
                                  [&](const ActiveSet& s) { return s.below == below; });
    if (--set->count > 0) continue;
    *set = readier.sets.back();
    readier.sets.pop_back();
    readier.meet_known = false;
  }
  if (!readier.meet_known) {
    readier.meet = kUnreached;
    for (const ActiveSet& set : readier.sets) {
      readier.meet =
          readier.meet == kUnreached ? set.below : sets_.Intersection(readier.meet, set.below);
    }
    readier.meet_known = true;
  }
  return readier.meet;
}

SetId TopLevelWaits::PassedByScan(uint32_t node, const Readier& readier) {
  SetId meet = kUnreached;
  for (const Parent& parent : readier.all) {
    if (node < parent.begin || node >= parent.end) continue;
    meet = meet == kUnreached ? parent.below : sets_.Intersection(meet, parent.below);
  }
  return meet;
}

}  // namespace culprit::causality
