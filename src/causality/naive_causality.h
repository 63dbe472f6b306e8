// SPDX-License-Identifier: Apache-2.0
//
// Impact and contrast (003 §3, §4; docs/causality.md) written down in the plainest
// way: the oracle of the tests and the peer of the benchmark. Wait graphs are
// unfolded into all their paths, places are lists of labels, sets are sets of
// strings, every nanosecond of a wait is marked by itself. Shares nothing with the
// real one but the wait graph, the glob and the result types. Exponential in the
// depth of the graphs and linear in nanoseconds: small traces only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/glob.h"
#include "causality/contrast.h"
#include "trace/trace.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_graph.h"

namespace culprit::causality {

// One event as a node with its edges written out.
struct NaiveNode {
  const trace::Event* event = nullptr;
  waitgraph::EventIndex index = 0;
  int64_t dur_ns = 0;
  int64_t begin_ns = 0;
  std::vector<size_t> children;
};

struct NaiveGraph {
  std::vector<NaiveNode> nodes;
  std::vector<size_t> roots;
};

// "kind|first|second", as a chain node.
using NaiveLabel = std::array<std::string, 3>;
using NaivePlace = std::vector<NaiveLabel>;

struct NaiveCost {
  int64_t cost_ns = 0;
  uint64_t count = 0;

  bool operator==(const NaiveCost&) const = default;
};

struct NaiveInstance {
  std::string name;
  std::string trace;
  std::string scenario;
  int64_t dur_ns = 0;
  std::map<NaivePlace, NaiveCost> places;
};

struct NaiveTimes {
  int64_t wait_ns = 0;
  int64_t run_ns = 0;
  std::set<std::tuple<std::string, waitgraph::EventIndex, int64_t>> distinct;  // one a nanosecond
};

class NaiveTrace {
 public:
  NaiveTrace(const trace::Trace& trace, std::string name, std::vector<std::string> globs)
      : trace_(trace), timelines_(trace), name_(std::move(name)), globs_(std::move(globs)) {}

  // Modules of the set that are in the stack, and "" for the set itself.
  std::set<std::string> Components(trace::StackId stack) const {
    std::set<std::string> components;
    for (const trace::FrameId frame : trace_.dictionary.StackFrames(stack)) {
      if (!IsChosen(frame)) continue;
      components.insert("");
      components.insert(Module(frame));
    }
    return components;
  }

  std::string Signature(trace::StackId stack) const {
    std::string signature;
    for (const trace::FrameId frame : trace_.dictionary.StackFrames(stack)) {
      const std::string name = trace_.dictionary.FrameName(frame);
      const bool plain = name.starts_with("[kernel]!") || name.starts_with("libc.so.6!");
      const bool has_other = !signature.empty() && !(signature.starts_with("[kernel]!") ||
                                                     signature.starts_with("libc.so.6!"));
      if (IsChosen(frame) && !(globs_.empty() && plain && has_other)) signature = name;
    }
    return signature;
  }

  NaiveGraph Graph(const trace::Instance& instance) const {
    const waitgraph::WaitGraph graph = BuildWaitGraph(timelines_, instance);
    NaiveGraph naive;
    std::vector<size_t> met(graph.nodes.size());
    for (size_t i = 0; i < graph.breadth_first.size(); ++i) met[graph.breadth_first[i]] = i;
    for (const waitgraph::GraphNode& node : graph.nodes) {
      naive.nodes.push_back(
          {&trace_.events[node.event], node.event, node.dur_ns(), node.begin_ns, {}});
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const trace::Event& wait = *naive.nodes[i].event;
      for (size_t k = graph.nodes[i].children_begin; k < graph.nodes[i].children_end; ++k) {
        const trace::Event& child = *naive.nodes[k].event;
        const bool forward =
            child.end_ns() != wait.end_ns() ? child.end_ns() < wait.end_ns() : met[i] < met[k];
        if (child.kind == trace::EventKind::kReady) continue;
        if (child.kind == trace::EventKind::kWait && !forward) continue;
        naive.nodes[i].children.push_back(k);
      }
    }
    for (size_t i = graph.roots_begin; i < graph.roots_end; ++i) naive.roots.push_back(i);
    return naive;
  }

  // Adds to [scenario or "" for all][component].
  void Impact(const trace::Instance& instance,
              std::map<std::string, std::map<std::string, NaiveTimes>>& times) const {
    const NaiveGraph graph = Graph(instance);
    std::set<std::string> all;
    for (const NaiveNode& node : graph.nodes) all.merge(Components(node.event->stack));
    const std::string scenario(trace_.dictionary.Text(instance.scenario));
    for (const std::string& component : all) {
      std::set<size_t> counted;
      std::set<size_t> seen;
      for (const size_t root : graph.roots) TopLevel(graph, root, component, seen, counted);
      for (const std::string& of : {scenario, std::string()}) {
        NaiveTimes& sum = times[of][component];
        for (const size_t i : counted) {
          sum.wait_ns += graph.nodes[i].dur_ns;
          for (int64_t ns = 0; ns < graph.nodes[i].dur_ns; ++ns) {
            sum.distinct.insert({name_, graph.nodes[i].index, graph.nodes[i].begin_ns + ns});
          }
        }
        for (const NaiveNode& node : graph.nodes) {
          const bool ran = node.event->kind == trace::EventKind::kRunning;
          if (ran && Components(node.event->stack).count(component) != 0) {
            sum.run_ns += node.dur_ns;
          }
        }
      }
    }
  }

  // False if there are more than `max_paths` paths.
  bool Chains(const trace::Instance& instance, size_t max_paths, NaiveInstance& result) const {
    const NaiveGraph graph = Graph(instance);
    std::set<size_t> roots;
    std::set<size_t> seen;
    for (const size_t root : graph.roots) Promote(graph, root, seen, roots);
    std::map<NaivePlace, std::map<size_t, int64_t>> events;
    size_t left = max_paths;
    for (const size_t root : roots) {
      if (!Unfold(graph, root, {}, left, events)) return false;
    }
    for (const auto& [place, at] : events) {
      NaiveCost& cost = result.places[place];
      for (const auto& [node, dur_ns] : at) {
        cost.cost_ns += dur_ns;
        ++cost.count;
      }
    }
    return true;
  }

 private:
  std::string Module(trace::FrameId id) const {
    const trace::ModuleId module = trace_.dictionary.frames()[id.value].module;
    if (!module.valid()) return "[no module]";
    return std::string(trace_.dictionary.Text(trace_.dictionary.modules()[module.value].name));
  }

  bool IsChosen(trace::FrameId id) const {
    const std::string name = trace_.dictionary.FrameName(id);
    const std::string function(
        trace_.dictionary.Text(trace_.dictionary.frames()[id.value].function));
    const std::string module = name.find('!') == std::string::npos ? "" : Module(id);
    for (const std::string& glob : globs_) {
      if (glob.find('!') != std::string::npos
              ? MatchesGlob(glob, name)
              : MatchesGlob(glob, function) || MatchesGlob(glob, module)) {
        return true;
      }
    }
    return globs_.empty();
  }

  void TopLevel(const NaiveGraph& graph, size_t i, const std::string& component,
                std::set<size_t>& seen, std::set<size_t>& counted) const {
    const NaiveNode& node = graph.nodes[i];
    if (node.event->kind != trace::EventKind::kWait || !seen.insert(i).second) return;
    if (Components(node.event->stack).count(component) != 0) {
      counted.insert(i);
      return;
    }
    for (const size_t child : node.children) TopLevel(graph, child, component, seen, counted);
  }

  void Promote(const NaiveGraph& graph, size_t i, std::set<size_t>& seen,
               std::set<size_t>& roots) const {
    if (!seen.insert(i).second) return;
    const NaiveNode& node = graph.nodes[i];
    const bool can_be_root = node.event->kind == trace::EventKind::kWait ||
                             node.event->kind == trace::EventKind::kRunning;
    if (can_be_root && !Components(node.event->stack).empty()) {
      roots.insert(i);
      return;
    }
    for (const size_t child : node.children) Promote(graph, child, seen, roots);
  }

  std::string Device(trace::ThreadId id) const {
    const std::string name(trace_.dictionary.Text(trace_.dictionary.threads()[id.value].name));
    if (name.find("disk") != std::string::npos) return "DiskService";
    if (name.find("timer") != std::string::npos) return "TimerService";
    return name.find("interrupt") != std::string::npos ? "InterruptService" : "HardwareService";
  }

  NaiveLabel Label(const NaiveNode& node) const {
    const trace::Event& event = *node.event;
    if (event.kind == trace::EventKind::kRunning) return {"running", Signature(event.stack), ""};
    if (event.kind == trace::EventKind::kHardware) return {"hardware", Device(event.thread), ""};
    const bool by_device =
        event.peer.valid() &&
        trace_.dictionary.threads()[event.peer.value].kind == trace::ThreadKind::kDevice;
    if (by_device) return {"device wait", Signature(event.stack), Device(event.peer)};
    const waitgraph::EventIndex unwait = timelines_.UnwaitOf(node.index);
    return {"wait", Signature(event.stack),
            unwait == waitgraph::kNoEvent ? "" : Signature(trace_.events[unwait].stack)};
  }

  bool Unfold(const NaiveGraph& graph, size_t i, NaivePlace path, size_t& left,
              std::map<NaivePlace, std::map<size_t, int64_t>>& events) const {
    if (left == 0) return false;
    --left;
    const NaiveNode& node = graph.nodes[i];
    path.push_back(Label(node));
    events[path][i] = node.dur_ns;
    for (const size_t child : node.children) {
      if (!Unfold(graph, child, path, left, events)) return false;
    }
    if (node.event->kind != trace::EventKind::kWait || !node.children.empty()) return true;
    const bool by_device = path.back()[0] == "device wait";
    path.push_back(by_device ? NaiveLabel{"hardware", path.back()[2], ""}
                             : NaiveLabel{"unexplained", "", ""});
    events[path][i] = node.dur_ns;
    return true;
  }

  const trace::Trace& trace_;
  waitgraph::Timelines timelines_;
  std::string name_;
  std::vector<std::string> globs_;
};

inline SignatureTuple NaiveTuple(const NaivePlace& segment) {
  std::set<std::string> wait;
  std::set<std::string> unwait;
  std::set<std::string> running;
  for (const auto& [kind, first, second] : segment) {
    if (kind == "wait") {
      wait.insert(first);
      unwait.insert(second);
    } else {
      running.insert(first);
    }
  }
  for (auto* set : {&wait, &unwait, &running}) set->erase("");
  return {
      {wait.begin(), wait.end()}, {unwait.begin(), unwait.end()}, {running.begin(), running.end()}};
}

inline bool NaiveContains(const SignatureTuple& whole, const SignatureTuple& part) {
  return std::ranges::includes(whole.wait, part.wait) &&
         std::ranges::includes(whole.unwait, part.unwait) &&
         std::ranges::includes(whole.running, part.running);
}

struct NaivePattern {
  int64_t cost_ns = 0;
  uint64_t count = 0;
  uint64_t fast_count = 0;
  int64_t fast_cost_ns = 0;
  std::map<std::string, int64_t> instances;  // slow ones, by name
  std::set<std::string> traces;
};

struct NaiveContrast {
  std::map<SignatureTuple, ClassCosts> metas;
  std::set<SignatureTuple> contrasts;
  std::map<SignatureTuple, NaivePattern> patterns;
  int64_t root_ns = 0;
  int64_t pruned_ns = 0;
};

inline NaiveContrast NaiveContrasts(const std::vector<NaiveInstance>& instances, int64_t t_fast_ns,
                                    int64_t t_slow_ns, size_t k) {
  NaiveContrast result;
  std::map<NaivePlace, NaiveCost> graphs[2];
  const auto is_slow = [&](const NaiveInstance& i) { return i.dur_ns > t_slow_ns; };
  const auto in_class = [&](const NaiveInstance& i) { return is_slow(i) || i.dur_ns < t_fast_ns; };
  const auto is_pruned = [](const NaivePlace& place) { return place[0][0] == "device wait"; };
  for (const NaiveInstance& instance : instances) {
    if (!in_class(instance)) continue;
    for (const auto& [place, cost] : instance.places) {
      if (is_slow(instance) && place.size() == 1) result.root_ns += cost.cost_ns;
      if (is_slow(instance) && place.size() == 1 && is_pruned(place)) {
        result.pruned_ns += cost.cost_ns;
      }
      if (is_pruned(place)) continue;
      NaiveCost& sum = graphs[is_slow(instance) ? 1 : 0][place];
      sum.cost_ns += cost.cost_ns;
      sum.count += cost.count;
    }
  }
  for (const size_t slow : {0, 1}) {
    for (const auto& [place, cost] : graphs[slow]) {
      if (NaiveTuple({place.back()}).empty()) continue;
      for (size_t length = 1; length <= std::min(k, place.size()); ++length) {
        const NaivePlace segment(place.end() - static_cast<std::ptrdiff_t>(length), place.end());
        ClassCosts& costs = result.metas[NaiveTuple(segment)];
        (slow != 0 ? costs.slow_ns : costs.fast_ns) += cost.cost_ns;
        (slow != 0 ? costs.slow_count : costs.fast_count) += cost.count;
      }
    }
  }
  for (const auto& [tuple, costs] : result.metas) {
    const bool only = costs.slow_count > 0 && costs.fast_count == 0;
    // (Cs / Ns) / (Cf / Nf) > Ts / Tf, in whole numbers.
    const auto product = [](int64_t a, uint64_t b, int64_t c) {
      return static_cast<uint64_t>(a) * b * static_cast<uint64_t>(c);
    };
    const bool slower = costs.slow_count > 0 && costs.fast_count > 0 &&
                        product(costs.slow_ns, costs.fast_count, t_fast_ns) >
                            product(costs.fast_ns, costs.slow_count, t_slow_ns);
    if (only || slower) result.contrasts.insert(tuple);
  }
  const auto is_end = [](const NaivePlace& place) {
    return place.back()[0] != "wait" && place.back()[0] != "device wait";
  };
  for (const auto& [place, cost] : graphs[1]) {
    if (!is_end(place)) continue;
    const SignatureTuple tuple = NaiveTuple(place);
    const bool chosen =
        std::any_of(result.contrasts.begin(), result.contrasts.end(),
                    [&](const SignatureTuple& part) { return NaiveContains(tuple, part); });
    if (!chosen) continue;
    result.patterns[tuple].cost_ns += cost.cost_ns;
    result.patterns[tuple].count += cost.count;
  }
  for (const NaiveInstance& instance : instances) {
    if (!in_class(instance)) continue;
    for (const auto& [place, cost] : instance.places) {
      const auto it = result.patterns.find(NaiveTuple(place));
      if (is_pruned(place) || !is_end(place) || it == result.patterns.end()) continue;
      if (is_slow(instance)) {
        it->second.instances[instance.name] += cost.cost_ns;
        it->second.traces.insert(instance.trace);
      } else {
        it->second.fast_cost_ns += cost.cost_ns;
        it->second.fast_count += cost.count;
      }
    }
  }
  return result;
}

}  // namespace culprit::causality
