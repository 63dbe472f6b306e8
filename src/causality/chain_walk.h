// SPDX-License-Identifier: Apache-2.0
//
// ChainWalk: the chains of one wait graph, laid into the forest (003 §4.2.2,
// Algorithm 1, lines 3 to 14). Roots without the component are removed, their
// children become roots, until all have it. From those every way down is followed
// by signatures, level by level: the events that stand at one place of the forest
// have one union of children, each of which is placed once. So a ⟨event, place⟩
// pair costs its work once, however many ways lead there.
//
// Gives the cost and number of events of each place the instance uses. Memory is
// kept between graphs; one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "causality/chain_forest.h"
#include "causality/component.h"
#include "causality/evidence.h"
#include "causality/top_level.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_graph.h"

namespace culprit::causality {

// "DiskService", "NetworkService", ... by the device's name.
std::string_view DeviceSignature(std::string_view device);

class ChainWalk {
 public:
  // Signatures go to `signatures`, places to `forest`. All must outlive it.
  ChainWalk(const waitgraph::Timelines& timelines, ComponentTable& components,
            const TopLevelWaits& top_level, StringTable& signatures, ChainForest& forest);

  // Appends the rows of the graph, by place; `top_level` must have been asked for
  // this graph. False if there were more than `max_events` pairs: the rows are
  // then those of the first levels.
  bool Walk(const waitgraph::WaitGraph& graph, uint64_t max_events, std::vector<ChainRow>& rows);
  uint64_t events() const { return events_; }  // pairs of the last walk

  // Signatures of an event, as numbers of the table; kNoSignature: none.
  SignatureId SignatureOf(trace::StackId stack, trace::ThreadId thread);
  SignatureId UnwaitSignatureOf(waitgraph::EventIndex wait);

 private:
  struct Placed {
    ChainIndex place = 0;
    uint32_t node = 0;
  };
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
    uint32_t rank = 0;
  };

  void Prepare();
  void PlaceRoots();
  void Expand(size_t begin, size_t end);
  void Place(ChainIndex parent, uint32_t node);
  void PlaceWait(ChainIndex parent, uint32_t node, const trace::Event& event);
  bool HasChildren(uint32_t node) const;
  void Add(ChainIndex place, int64_t cost_ns);
  SignatureId Device(trace::ThreadId thread);
  bool Admits(uint32_t child);

  const waitgraph::Timelines& timelines_;
  ComponentTable& components_;
  const TopLevelWaits& top_level_;
  StringTable& signatures_;
  ChainForest& forest_;
  std::vector<SignatureId> frame_signatures_;   // by FrameId; kNoSignature: not yet
  std::vector<SignatureId> device_signatures_;  // by ThreadId
  const waitgraph::WaitGraph* graph_ = nullptr;
  std::vector<uint32_t> leaves_before_;  // by node: how many running and hardware ones
  std::vector<uint32_t> waits_before_;
  std::vector<int32_t> promoted_;
  std::vector<Placed> level_;
  std::vector<Placed> next_;
  std::vector<Range> ranges_;
  std::vector<Range> covering_;  // a heap, lowest rank first
  std::vector<ChainRow>* rows_ = nullptr;
  std::vector<uint64_t> row_of_;  // by place: number of the walk << 32 | row
  size_t first_row_ = 0;
  uint64_t walk_ = 0;
  uint64_t events_ = 0;
};

}  // namespace culprit::causality
