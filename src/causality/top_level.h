// SPDX-License-Identifier: Apache-2.0
//
// TopLevelWaits: the top-level waits of all components in one wait graph (003
// §3.2). A wait counts for a component that it belongs to, if some way from a root
// leads to it on which no wait of that component was passed. For all components
// at once: `passed` of a wait is the set of components that every way to it has
// passed; it counts for those of its own that are not in there.
//
// Also settles in which order waits stand (rank): those that end later first, at
// one moment those that breadth-first search met first. An edge between two waits
// counts only from lower to higher rank, so there are no circles.
//
// O(W log W) for W waits of the graph, whatever the number of edges. Memory is
// kept between graphs; one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "causality/component.h"
#include "causality/set_table.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_graph.h"

namespace culprit::causality {

class TopLevelWaits {
 public:
  // `idle` by EventIndex, waits to be left out; may be empty. All must outlive it.
  TopLevelWaits(const waitgraph::Timelines& timelines, ComponentTable& components,
                const std::vector<bool>& idle, SetTable& sets);

  // Ranks and passed sets of the graph of an instance that ends at t1_ns.
  void Find(const waitgraph::WaitGraph& graph, int64_t t1_ns);

  // Waits of the graph by rank, as nodes; without idle ones.
  const std::vector<uint32_t>& waits() const { return waits_; }
  // By node, only of those waits.
  uint32_t rank(uint32_t node) const { return rank_[node]; }
  bool reached(uint32_t node) const { return passed_[node] != kUnreached; }
  SetId passed(uint32_t node) const { return passed_[node]; }
  SetId own(uint32_t node) const { return own_[node]; }
  bool IsWait(uint32_t node) const { return rank_[node] != kNoRank; }
  // Of a wait that is reached: a top-level wait of the whole set, or one that is
  // not of the set and has none above it.
  bool IsTop(uint32_t node) const { return IsBeforeSet(node) && InSet(own_[node]); }
  bool IsOutside(uint32_t node) const { return IsBeforeSet(node) && !InSet(own_[node]); }

 private:
  static constexpr SetId kUnreached = UINT32_MAX;
  static constexpr uint32_t kNoRank = UINT32_MAX;
  // Ranges of a thread's nodes that waits of lower rank lead to.
  struct Parent {
    uint32_t begin = 0;
    uint32_t end = 0;
    SetId below = kEmptySet;  // passed by whoever came through this wait
  };
  struct ActiveSet {
    SetId below = kEmptySet;
    uint32_t count = 0;
  };
  struct Readier {
    std::vector<Parent> all;
    std::vector<Parent> active;  // a heap, latest begin first
    std::vector<ActiveSet> sets;
    uint32_t last_node = UINT32_MAX;
    SetId meet = kUnreached;
    bool meet_known = false;
  };

  bool InSet(SetId set) const {
    const auto items = sets_.Items(set);
    return !items.empty() && items.front() == kWholeSet;
  }
  bool IsBeforeSet(uint32_t node) const { return reached(node) && !InSet(passed_[node]); }
  void RankWaits(const waitgraph::WaitGraph& graph);
  SetId PassedBy(uint32_t node, Readier& readier, bool in_order);
  SetId PassedByScan(uint32_t node, const Readier& readier);
  void AddParent(const waitgraph::GraphNode& wait, SetId below);

  const waitgraph::Timelines& timelines_;
  ComponentTable& components_;
  const std::vector<bool>& idle_;
  SetTable& sets_;
  struct Ranked {
    int64_t end_ns = 0;
    uint32_t order = 0;  // breadth first
    uint32_t node = 0;
  };
  std::vector<Ranked> ranked_;
  std::vector<uint32_t> waits_;
  std::vector<uint32_t> order_;  // by node: breadth first
  std::vector<uint32_t> rank_;
  std::vector<SetId> passed_;
  std::vector<SetId> own_;
  std::vector<Readier> readiers_;  // by thread
  std::vector<uint32_t> used_;     // threads whose Readier is not empty
};

}  // namespace culprit::causality
