// SPDX-License-Identifier: Apache-2.0
#include "cli/show_graph.h"

#include <memory>

#include "base/json_writer.h"
#include "base/text.h"

namespace culprit::cli {

using trace::Event;
using trace::EventKind;
using waitgraph::GraphNode;
using waitgraph::WaitGraph;

namespace {

// Nodes in pre-order of the tree "found by", children by number.
std::vector<uint32_t> PreOrder(const WaitGraph& graph) {
  std::vector<std::vector<uint32_t>> children(graph.nodes.size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].found_by != UINT32_MAX) children[graph.nodes[i].found_by].push_back(i);
  }
  std::vector<uint32_t> order;
  std::vector<uint32_t> stack;
  for (uint32_t i = graph.roots_end; i-- > graph.roots_begin;) stack.push_back(i);
  while (!stack.empty()) {
    const uint32_t node = stack.back();
    stack.pop_back();
    order.push_back(node);
    stack.insert(stack.end(), children[node].rbegin(), children[node].rend());
  }
  return order;
}

// How many of a wait's children stand elsewhere in the tree.
uint32_t Elsewhere(const WaitGraph& graph, uint32_t index) {
  uint32_t count = 0;
  const GraphNode& node = graph.nodes[index];
  for (uint32_t i = node.children_begin; i < node.children_end; ++i) {
    count += graph.nodes[i].found_by == index ? 0 : 1;
  }
  return count;
}

}  // namespace

ShowTree GraphTree(const waitgraph::SegmentText& text, const WaitGraph& graph) {
  auto order = std::make_shared<std::vector<uint32_t>>(PreOrder(graph));
  auto places = std::make_shared<std::vector<uint32_t>>(graph.nodes.size());
  std::vector<uint32_t>& place = *places;
  ShowTree tree;
  for (uint32_t i = 0; i < order->size(); ++i) {
    const GraphNode& node = graph.nodes[(*order)[i]];
    place[(*order)[i]] = i;
    const uint32_t parent = node.found_by == UINT32_MAX ? UINT32_MAX : place[node.found_by];
    tree.nodes.push_back({.parent = parent, .dur_ns = node.dur_ns(), .weight_ns = node.dur_ns()});
  }
  tree.text = [order, &text, &graph](size_t i) {
    const uint32_t index = (*order)[i];
    const GraphNode& node = graph.nodes[index];
    std::string line = "#" + std::to_string(index) + " " + text.Describe(node.event);
    const uint32_t elsewhere = Elsewhere(graph, index);
    if (elsewhere > 0) {
      line += " → #" + std::to_string(node.children_begin) + "–#" +
              std::to_string(node.children_end - 1) + ", " + FormatCount(elsewhere) +
              " of them elsewhere";
    }
    return line;
  };
  tree.links = [order, places, &graph](size_t i, const std::vector<bool>& shown) {
    std::vector<uint32_t> links;
    const uint32_t index = (*order)[i];
    const GraphNode& node = graph.nodes[index];
    for (uint32_t child = node.children_begin; child < node.children_end; ++child) {
      const uint32_t to = (*places)[child];
      if (graph.nodes[child].found_by != index && shown[to]) links.push_back(to);
    }
    return links;
  };
  return tree;
}

std::string GraphJson(const waitgraph::SegmentText& text, const ShownInstance& shown,
                      const WaitGraph& graph) {
  const trace::Instance& instance = shown.instance();
  JsonWriter json;
  json.BeginObject().Field("trace", shown.trace.name).Field("instance", shown.name());
  json.Field("scenario", shown.scenario()).Field("thread", text.Thread(instance.thread));
  json.Field("t0_ns", instance.t0_ns).Field("t1_ns", instance.t1_ns);
  json.Field("dur_ns", instance.dur_ns());
  json.Field("roots_begin", graph.roots_begin).Field("roots_end", graph.roots_end);
  json.Key("nodes").BeginArray();
  for (const GraphNode& node : graph.nodes) {
    const Event& event = text.timelines().event(node.event);
    json.BeginObject().Field("begin_ns", node.begin_ns).Field("dur_ns", node.dur_ns());
    json.Field("kind", Name(event.kind)).Field("thread", text.Thread(event.thread));
    if (event.kind == EventKind::kWait) json.Field("class", Name(text.ClassOf(node.event)));
    if (event.kind == EventKind::kWait) json.Field("woken_by", text.Thread(event.peer));
    json.Field("children_begin", node.children_begin).Field("children_end", node.children_end);
    json.Key("frames").BeginArray();
    for (const trace::FrameId frame : text.dictionary().StackFrames(event.stack)) {
      json.String(text.dictionary().FrameName(frame));
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
