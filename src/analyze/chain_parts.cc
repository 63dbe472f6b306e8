// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "analyze/frame_names.h"
#include "analyze/heaviest.h"
#include "analyze/part.h"
#include "base/json_writer.h"
#include "stackmine/telling_frames.h"

namespace culprit::analyze {
namespace {

using stackmine::kNoNode;
using stackmine::NodeIndex;
using stackmine::PathKind;
using stackmine::PathNode;

constexpr size_t kFramesShown = 3;

std::string_view KindName(PathKind kind) {
  switch (kind) {
    case PathKind::kWait:
      return "wait";
    case PathKind::kRunning:
      return "running";
    case PathKind::kNotSampled:
      return "not sampled";
    case PathKind::kReady:
      return "ready";
    case PathKind::kPreempted:
      return "preempted";
    case PathKind::kHardware:
      return "hardware";
  }
  return "";
}

// Nodes that say the same to a person (kind, class and telling frames) are one
// here, though their whole stacks differ. A parent is made before its children.
struct ChainNode {
  int64_t parent = -1;
  PathKind kind = PathKind::kWait;
  waitgraph::WaitClass wait_class = waitgraph::WaitClass::kOther;
  std::vector<stackmine::FrameSymbol> frames;

  bool operator<(const ChainNode& other) const {
    return std::tie(parent, kind, wait_class, frames) <
           std::tie(other.parent, other.kind, other.wait_class, other.frames);
  }
};

class Chains {
 public:
  explicit Chains(const stackmine::Evidence& evidence) : evidence_(evidence) {
    places_.resize(evidence.forest.nodes().size(), -1);
  }

  void Add(const stackmine::PathRow& row, Speed speed) {
    const int64_t at = Place(row.node);
    total_ns[static_cast<size_t>(at)] += row.cost_ns;
    events[static_cast<size_t>(at)] += row.events;
    if (speed == Speed::kFast) fast_ns[static_cast<size_t>(at)] += row.cost_ns;
    if (speed == Speed::kSlow) slow_ns[static_cast<size_t>(at)] += row.cost_ns;
  }

  std::vector<ChainNode> nodes;
  std::vector<int64_t> total_ns, fast_ns, slow_ns, events;

 private:
  int64_t Place(NodeIndex n) {
    if (places_[n] >= 0) return places_[n];
    const PathNode& from = evidence_.forest.nodes()[n];
    ChainNode node;
    if (from.parent != kNoNode) node.parent = Place(from.parent);
    node.kind = from.kind;
    if (from.kind == PathKind::kWait) node.wait_class = from.wait_class;
    node.frames = stackmine::TellingFrames(evidence_.stacks, from.stack, kFramesShown);
    const auto [it, added] = known_.try_emplace(node, static_cast<int64_t>(nodes.size()));
    if (added) {
      nodes.push_back(node);
      for (auto* column : {&total_ns, &fast_ns, &slow_ns, &events}) column->push_back(0);
    }
    return places_[n] = it->second;
  }

  const stackmine::Evidence& evidence_;
  std::vector<int64_t> places_;
  std::map<ChainNode, int64_t> known_;
};

template <typename Get>
void ChainColumn(JsonWriter& json, std::string_view name, const std::vector<uint32_t>& kept,
                 Get get) {
  json.Key(name).BeginArray();
  for (const uint32_t node : kept) get(node);
  json.EndArray();
}

Chains ChainsOf(const Analysis& analysis, uint32_t scenario) {
  const stackmine::Evidence& evidence = analysis.evidence;
  Chains chains(evidence);
  RowCursor rows(evidence.rows);
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    if (evidence.instances[i].scenario != scenario) continue;
    const uint64_t end = evidence.instances[i].rows_end;
    for (const stackmine::PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      chains.Add(row, analysis.speeds.by_instance[i]);
    }
  }
  return chains;
}

int64_t LeftOut(const Chains& chains, const std::vector<int64_t>& place) {
  int64_t left_out_ns = 0;
  for (size_t n = 0; n < chains.nodes.size(); ++n) {
    const int64_t parent = chains.nodes[n].parent;
    const bool top = parent < 0 || place[static_cast<size_t>(parent)] >= 0;
    if (place[n] < 0 && top) left_out_ns += chains.total_ns[n];
  }
  return left_out_ns;
}

void WriteNodes(const Chains& chains, const std::vector<uint32_t>& kept, FrameNames& names,
                JsonWriter& json) {
  std::vector<int64_t> place(chains.nodes.size(), -1);
  for (size_t i = 0; i < kept.size(); ++i) place[kept[i]] = static_cast<int64_t>(i);
  ChainColumn(json, "parent", kept, [&](uint32_t n) {
    const int64_t parent = chains.nodes[n].parent;
    json.Int(parent < 0 ? -1 : place[static_cast<size_t>(parent)]);
  });
  ChainColumn(json, "kind", kept, [&](uint32_t n) { json.String(KindName(chains.nodes[n].kind)); });
  ChainColumn(json, "class", kept, [&](uint32_t n) {
    const bool wait = chains.nodes[n].kind == PathKind::kWait;
    json.String(wait ? waitgraph::Name(chains.nodes[n].wait_class) : std::string_view());
  });
  ChainColumn(json, "stack", kept,
              [&](uint32_t n) { names.WriteFrames(chains.nodes[n].frames, json); });
  ChainColumn(json, "total_ns", kept, [&](uint32_t n) { json.Int(chains.total_ns[n]); });
  ChainColumn(json, "fast_ns", kept, [&](uint32_t n) { json.Int(chains.fast_ns[n]); });
  ChainColumn(json, "slow_ns", kept, [&](uint32_t n) { json.Int(chains.slow_ns[n]); });
  ChainColumn(json, "events", kept, [&](uint32_t n) { json.Int(chains.events[n]); });
  names.WriteNames(json);
  json.Field("left_out_ns", LeftOut(chains, place));
}

Part ChainPart(const Analysis& analysis, uint32_t scenario, const PartOptions& options) {
  const Chains chains = ChainsOf(analysis, scenario);
  const ScenarioSpeeds& speeds = analysis.speeds.scenarios[scenario];
  FrameNames names(analysis.evidence.stacks);
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("scenario", std::string_view(analysis.evidence.scenarios[scenario]));
  json.Field("instances", speeds.instances).Field("fast_instances", speeds.fast);
  json.Field("slow_instances", speeds.slow).Field("fast_below_ns", speeds.p50_ns);
  json.Field("slow_above_ns", speeds.p90_ns);
  WriteNodes(chains, Heaviest(chains.total_ns, options.chain_nodes), names, json);
  json.EndObject();
  return {.name = "chains-" + std::to_string(scenario), .json = json.Take()};
}

}  // namespace

std::vector<Part> ChainParts(const Analysis& analysis, const PartOptions& options) {
  std::vector<uint32_t> order(analysis.evidence.scenarios.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return analysis.speeds.scenarios[a].total_ns > analysis.speeds.scenarios[b].total_ns;
  });
  if (order.size() > options.scenarios) order.resize(options.scenarios);
  std::vector<Part> parts;
  for (const uint32_t scenario : order) parts.push_back(ChainPart(analysis, scenario, options));
  return parts;
}

}  // namespace culprit::analyze
