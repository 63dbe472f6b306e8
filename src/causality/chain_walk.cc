// SPDX-License-Identifier: Apache-2.0
#include "causality/chain_walk.h"

#include <algorithm>
#include <string>

namespace culprit::causality {
namespace {

using trace::Event;
using trace::EventKind;
using trace::ThreadId;
using trace::ThreadKind;
using waitgraph::GraphNode;

}  // namespace

std::string_view DeviceSignature(std::string_view device) {
  struct Family {
    std::string_view word;
    std::string_view signature;
  };
  static constexpr Family kFamilies[] = {
      {"disk", "DiskService"},    {"block", "DiskService"},    {"nvme", "DiskService"},
      {"net", "NetworkService"},  {"timer", "TimerService"},   {"input", "InputService"},
      {"gpu", "GraphicsService"}, {"irq", "InterruptService"}, {"interrupt", "InterruptService"},
  };
  std::string lower(device);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const Family& family : kFamilies) {
    if (lower.find(family.word) != std::string::npos) return family.signature;
  }
  return "HardwareService";
}

ChainWalk::ChainWalk(const waitgraph::Timelines& timelines, ComponentTable& components,
                     const TopLevelWaits& top_level, StringTable& signatures, ChainForest& forest)
    : timelines_(timelines),
      components_(components),
      top_level_(top_level),
      signatures_(signatures),
      forest_(forest),
      frame_signatures_(timelines.trace().dictionary.frames().size(), kNoSignature),
      device_signatures_(timelines.trace().dictionary.threads().size(), kNoSignature) {}

SignatureId ChainWalk::SignatureOf(trace::StackId stack, ThreadId thread) {
  const SignatureId frame = components_.SignatureOf(stack, thread);
  if (frame == kNoSignature) return kNoSignature;
  SignatureId& signature = frame_signatures_[frame];
  if (signature == kNoSignature) {
    const trace::Dictionary& dictionary = timelines_.trace().dictionary;
    signature = signatures_.Intern(dictionary.FrameName(trace::FrameId(frame))).value;
  }
  return signature;
}

SignatureId ChainWalk::UnwaitSignatureOf(waitgraph::EventIndex wait) {
  const waitgraph::EventIndex unwait = timelines_.UnwaitOf(wait);
  if (unwait == waitgraph::kNoEvent) return kNoSignature;
  const Event& event = timelines_.event(unwait);
  return SignatureOf(event.stack, event.thread);
}

SignatureId ChainWalk::Device(ThreadId thread) {
  SignatureId& signature = device_signatures_[thread.value];
  if (signature == kNoSignature) {
    const trace::Dictionary& dictionary = timelines_.trace().dictionary;
    const std::string_view name = dictionary.Text(dictionary.threads()[thread.value].name);
    signature = signatures_.Intern(DeviceSignature(name)).value;
  }
  return signature;
}

bool ChainWalk::Walk(const waitgraph::WaitGraph& graph, uint64_t max_events,
                     std::vector<ChainRow>& rows) {
  graph_ = &graph;
  rows_ = &rows;
  first_row_ = rows.size();
  ++walk_;
  events_ = 0;
  level_.clear();
  next_.clear();
  Prepare();
  PlaceRoots();
  while (!next_.empty() && events_ <= max_events) {
    level_.swap(next_);
    next_.clear();
    for (size_t begin = 0; begin < level_.size() && events_ <= max_events;) {
      size_t end = begin + 1;
      while (end < level_.size() && level_[end].place == level_[begin].place) ++end;
      Expand(begin, end);
      begin = end;
    }
  }
  std::sort(rows.begin() + static_cast<std::ptrdiff_t>(first_row_), rows.end(),
            [](const ChainRow& a, const ChainRow& b) { return a.node < b.node; });
  return events_ <= max_events;
}

// How many nodes before each are leaves, and waits, that belong to chains: ready
// delays and idle waits do not.
void ChainWalk::Prepare() {
  const std::vector<GraphNode>& nodes = graph_->nodes;
  leaves_before_.resize(nodes.size() + 1);
  waits_before_.resize(nodes.size() + 1);
  uint32_t leaves = 0;
  uint32_t waits = 0;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    leaves_before_[i] = leaves;
    waits_before_[i] = waits;
    const EventKind kind = timelines_.event(nodes[i].event).kind;
    if (kind == EventKind::kRunning || kind == EventKind::kHardware) ++leaves;
    if (kind == EventKind::kWait && top_level_.IsWait(i)) ++waits;
  }
  leaves_before_[nodes.size()] = leaves;
  waits_before_[nodes.size()] = waits;
}

// A removed wait hands its children up; for those that are waits themselves the
// sets of passed components already say so.
void ChainWalk::PlaceRoots() {
  const std::vector<GraphNode>& nodes = graph_->nodes;
  const trace::Trace& trace = timelines_.trace();
  promoted_.assign(nodes.size() + 1, 0);
  ++promoted_[graph_->roots_begin];
  --promoted_[graph_->roots_end];
  for (const uint32_t i : top_level_.waits()) {
    if (!top_level_.IsOutside(i)) continue;
    ++promoted_[nodes[i].children_begin];
    --promoted_[nodes[i].children_end];
  }
  int32_t ways = 0;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    ways += promoted_[i];
    const Event& event = trace.events[nodes[i].event];
    if (event.kind == EventKind::kRunning) {
      if (ways > 0 && components_.ComponentsOf(event.stack, event.thread) != kEmptySet) {
        Place(kNoChain, i);
      }
    } else if (top_level_.IsWait(i) && top_level_.IsTop(i)) {
      Place(kNoChain, i);
    }
  }
  std::sort(next_.begin(), next_.end(), [](const Placed& a, const Placed& b) {
    return a.place != b.place ? a.place < b.place : a.node < b.node;
  });
}

// The children of all events at one place. Ranges of different waits overlap; each
// node is visited once, and a wait only if one of the ranges over it comes from a
// wait of lower rank.
void ChainWalk::Expand(size_t begin, size_t end) {
  const std::vector<GraphNode>& nodes = graph_->nodes;
  ranges_.clear();
  for (size_t i = begin; i < end; ++i) {
    const GraphNode& node = nodes[level_[i].node];
    ranges_.push_back({node.children_begin, node.children_end, top_level_.rank(level_[i].node)});
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const ChainIndex parent = level_[begin].place;
  const size_t first_next = next_.size();
  covering_.clear();
  uint32_t at = 0;
  for (size_t i = 0; i < ranges_.size();) {
    at = std::max(at, ranges_[i].begin);
    uint32_t stop = ranges_[i].end;
    const auto cover = [&] {
      covering_.push_back(ranges_[i++]);
      std::push_heap(covering_.begin(), covering_.end(),
                     [](const Range& a, const Range& b) { return a.rank > b.rank; });
    };
    cover();
    for (; at < stop; ++at) {
      for (; i < ranges_.size() && ranges_[i].begin <= at; cover()) {
        stop = std::max(stop, ranges_[i].end);
      }
      if (Admits(at)) Place(parent, at);
    }
  }
  std::sort(next_.begin() + static_cast<std::ptrdiff_t>(first_next), next_.end(),
            [](const Placed& a, const Placed& b) {
              return a.place != b.place ? a.place < b.place : a.node < b.node;
            });
}

bool ChainWalk::Admits(uint32_t child) {
  const EventKind kind = timelines_.event(graph_->nodes[child].event).kind;
  if (kind == EventKind::kRunning || kind == EventKind::kHardware) return true;
  if (!top_level_.IsWait(child)) return false;
  const auto higher = [](const Range& a, const Range& b) { return a.rank > b.rank; };
  while (!covering_.empty() && covering_.front().end <= child) {
    std::pop_heap(covering_.begin(), covering_.end(), higher);
    covering_.pop_back();
  }
  return !covering_.empty() && covering_.front().rank < top_level_.rank(child);
}

void ChainWalk::Place(ChainIndex parent, uint32_t node) {
  const Event& event = timelines_.event(graph_->nodes[node].event);
  if (event.kind == EventKind::kWait) {
    PlaceWait(parent, node, event);
    return;
  }
  ChainNode chain = {.parent = parent};
  if (event.kind == EventKind::kHardware) {
    chain.kind = ChainKind::kHardware;
    chain.first = Device(event.thread);
  } else {
    chain.kind = ChainKind::kRunning;
    chain.first = SignatureOf(event.stack, event.thread);
  }
  Add(forest_.Intern(chain), graph_->nodes[node].dur_ns());
}

void ChainWalk::PlaceWait(ChainIndex parent, uint32_t node, const Event& event) {
  const GraphNode& wait = graph_->nodes[node];
  const auto& threads = timelines_.trace().dictionary.threads();
  const bool by_device =
      event.peer.value < threads.size() && threads[event.peer.value].kind == ThreadKind::kDevice;
  ChainNode chain = {.parent = parent};
  chain.kind = by_device ? ChainKind::kDeviceWait : ChainKind::kWait;
  chain.first = SignatureOf(event.stack, event.thread);
  chain.second = by_device ? Device(event.peer) : UnwaitSignatureOf(wait.event);
  const ChainIndex place = forest_.Intern(chain);
  Add(place, wait.dur_ns());
  if (HasChildren(node)) {
    next_.push_back({place, node});
    return;
  }
  ChainNode leaf = {.parent = place, .kind = ChainKind::kUnexplained};
  if (by_device) {
    leaf.kind = ChainKind::kHardware;
    leaf.first = chain.second;
  }
  Add(forest_.Intern(leaf), wait.dur_ns());
}

bool ChainWalk::HasChildren(uint32_t node) const {
  const GraphNode& wait = graph_->nodes[node];
  const uint32_t begin = wait.children_begin;
  const uint32_t end = wait.children_end;
  if (leaves_before_[end] > leaves_before_[begin]) return true;
  if (waits_before_[end] == waits_before_[begin]) return false;
  for (uint32_t i = end; i-- > begin;) {
    if (top_level_.IsWait(i) && top_level_.rank(i) > top_level_.rank(node)) return true;
  }
  return false;
}

void ChainWalk::Add(ChainIndex place, int64_t cost_ns) {
  ++events_;
  if (place >= row_of_.size()) row_of_.resize(std::max<size_t>(place + 1, row_of_.size() * 2));
  if (row_of_[place] >> 32 != walk_) {
    row_of_[place] = walk_ << 32 | (rows_->size() - first_row_);
    rows_->push_back({.node = place});
  }
  ChainRow& row = (*rows_)[first_row_ + (row_of_[place] & UINT32_MAX)];
  ++row.events;
  AddNs(row.cost_ns, cost_ns);
}

}  // namespace culprit::causality
