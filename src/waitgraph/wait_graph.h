// SPDX-License-Identifier: Apache-2.0
//
// WaitGraph: everything that can have to do with an instance (001 §IV, figure 2;
// SPEC §3). It starts from the tiles of the initiating thread in [t0, t1). Each
// wait in the graph has an edge to those tiles of its readier, the thread that
// ended it, that end within the wait; if a device ended it, to the hardware
// events of that device that do. And so on, until nothing is new. Everything is
// clipped at the instance's edges (the paper's strict containment loses time
// there), windows of waits too.
//
// An event is a node once, however many waits lead to it. Nodes stand by owner
// (thread, or device after all threads) and time, so the readier's tiles within
// a wait are neighbours and the edges of a wait are one range of nodes: V nodes
// cost O(V log n), although the edges may be V².
#pragma once

#include <cstdint>
#include <vector>

#include "waitgraph/timelines.h"

namespace culprit::waitgraph {

struct GraphNode {
  EventIndex event = kNoEvent;
  // Of a wait: the nodes [children_begin, children_end) of its readier.
  uint32_t children_begin = 0;
  uint32_t children_end = 0;
  uint32_t found_by = UINT32_MAX;  // the first wait that led here, breadth first; none for roots
  int64_t begin_ns = 0;            // clipped to the instance
  int64_t end_ns = 0;

  int64_t dur_ns() const { return end_ns - begin_ns; }
};

struct WaitGraph {
  std::vector<GraphNode> nodes;
  // The nodes of the initiating thread.
  uint32_t roots_begin = 0;
  uint32_t roots_end = 0;
  // All nodes, breadth first from the roots: each after the one it was found by.
  std::vector<uint32_t> breadth_first;
};

// Builds graphs of one trace; 12 bytes a tile are kept between them, among them
// where its children stand: a tile is in the graphs of many instances. One thread
// at a time; the Timelines must outlive it.
class WaitGraphBuilder {
 public:
  explicit WaitGraphBuilder(const Timelines& timelines);

  // Replaces `graph`, whose memory is used again.
  void Build(const trace::Instance& instance, WaitGraph& graph);

 private:
  // A place in all_tiles(), or after them in all_served().
  using Slot = uint32_t;
  struct Children {
    Slot begin = UINT32_MAX;  // not looked for yet
    Slot end = 0;
  };
  struct Found {
    Slot slot = 0;
    uint32_t found_by = 0;  // the order of the wait that led here
    Children children;
  };

  void Visit(Slot begin, Slot end, uint32_t found_by);
  Slot Unvisited(Slot slot);
  EventIndex EventAt(Slot slot) const;
  int64_t BeginAt(Slot slot) const;
  int64_t EndAt(Slot slot) const;
  Children FindChildren(Slot slot, int64_t after_ns, int64_t until_ns) const;
  Children ChildrenOf(Slot slot);
  void SortSlots();
  void Write(WaitGraph& graph) const;

  const Timelines& timelines_;
  int64_t t0_ns_ = 0;
  int64_t t1_ns_ = 0;
  std::vector<Children> children_;  // of tiles, when no instance clips them
  std::vector<Slot> next_;          // towards the nearest slot that is not visited
  std::vector<uint64_t> visited_;   // a bit a slot
  std::vector<Found> found_;        // breadth first
  std::vector<Slot> slots_;         // those of found_, sorted
};

// For a single graph; for many, keep a builder.
WaitGraph BuildWaitGraph(const Timelines& timelines, const trace::Instance& instance);

}  // namespace culprit::waitgraph
