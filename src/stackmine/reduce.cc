// SPDX-License-Identifier: Apache-2.0
#include "stackmine/reduce.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/glob.h"
#include "waitgraph/glob.h"

namespace culprit::stackmine {
namespace {

using trace::Event;
using trace::EventKind;
using trace::Instance;
using trace::ThreadId;
using waitgraph::AreaEvent;
using waitgraph::SegmentKind;

// Longer ones are damage; sums of anything shorter fit 64 bits.
constexpr int64_t kLongestInstanceNs = int64_t{1} << 50;
constexpr int64_t kLongestTotalNs = int64_t{1} << 56;

std::string WithoutNumbers(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      out += c;
    } else if (!out.ends_with('#')) {
      out += '#';
    }
  }
  return out;
}

// The instances to look at, with their numbers in the list they come from.
struct Chosen {
  std::vector<Instance> instances;
  std::vector<uint32_t> numbers;
  std::vector<uint32_t> scenarios;
};

class Reducer {
 public:
  Reducer(const waitgraph::Timelines& timelines, const ReduceOptions& options)
      : trace_(timelines.trace()),
        options_(options),
        timelines_(timelines),
        brought_(trace_.dictionary, evidence_.stacks) {
    evidence_.scope = options.area.scope;
  }

  Evidence Run(const std::string& name) {
    const bool automatic = options_.always_automatic || trace_.instances.empty();
    evidence_.traces.push_back(
        {.name = name, .automatic = automatic, .events = trace_.events.size()});
    const Chosen chosen = automatic ? FoundInstances() : MarkedInstances();
    CountOccurrences();
    const waitgraph::Area area =
        waitgraph::AreaOfInterest(timelines_, chosen.instances, options_.area);
    Rows(area, chosen);
    CountDistinct(area);
    evidence_.diagnostics.Merge(trace_.diagnostics);
    return std::move(evidence_);
  }

 private:
  const trace::Dictionary& dictionary() const { return trace_.dictionary; }

  void Choose(const Instance& instance, uint32_t number, const std::string& scenario,
              Chosen& chosen) {
    if (!instance.thread.valid() || instance.thread.value >= dictionary().threads().size()) {
      evidence_.diagnostics.Count("instance of a thread that is not in the trace");
      return;
    }
    const bool possible = instance.t0_ns > -kLongestTotalNs &&
                          instance.t1_ns < kLongestTotalNs * 64 &&
                          instance.t1_ns >= instance.t0_ns &&
                          instance.dur_ns() <= kLongestInstanceNs && total_ns_ <= kLongestTotalNs;
    if (!possible) {
      evidence_.diagnostics.Count("instance of an impossible duration");
      return;
    }
    const bool wanted = options_.scenarios.empty() || Matches(scenario);
    if (!wanted || instance.dur_ns() < options_.slower_than_ns) {
      ++evidence_.account.instances_left_out;
      evidence_.account.instances_left_out_ns += instance.dur_ns();
      return;
    }
    total_ns_ += instance.dur_ns();
    chosen.instances.push_back(instance);
    chosen.numbers.push_back(number);
    const auto next = static_cast<uint32_t>(evidence_.scenarios.size());
    const auto [it, added] = scenario_ids_.try_emplace(scenario, next);
    if (added) evidence_.scenarios.push_back(scenario);
    chosen.scenarios.push_back(it->second);
  }

  bool Matches(const std::string& scenario) const {
    return std::any_of(options_.scenarios.begin(), options_.scenarios.end(),
                       [&](const std::string& glob) { return MatchesGlob(glob, scenario); });
  }

  Chosen MarkedInstances() {
    Chosen chosen;
    for (uint32_t i = 0; i < trace_.instances.size(); ++i) {
      const Instance& instance = trace_.instances[i];
      Choose(instance, i, std::string(dictionary().Text(instance.scenario)), chosen);
    }
    return chosen;
  }

  Chosen FoundInstances() {
    const waitgraph::AutoInstances found = FindInstances(timelines_, options_.automatic);
    Chosen chosen;
    for (uint32_t i = 0; i < found.instances.size(); ++i) {
      const Instance& instance = found.instances[i];
      Choose(instance, i, found.scenarios[instance.scenario.value], chosen);
    }
    for (const waitgraph::Role& role : found.roles) {
      evidence_.roles.emplace(std::pair(role.scenario, role.idle_frame), role);
    }
    evidence_.account.idle_ns = found.idle_ns;
    evidence_.account.idle_threads = found.left_out_threads;
    evidence_.account.idle_threads_ns = found.left_out_ns;
    return chosen;
  }

  void CountOccurrences() {
    for (const Event& event : trace_.events) {
      const bool counts = event.kind == EventKind::kWait || event.kind == EventKind::kRunning;
      if (!counts || !event.stack.valid()) continue;
      const StackIndex stack = brought_.Bring(event.stack);
      if (stack >= evidence_.occurrences.size()) evidence_.occurrences.resize(stack + 1);
      ++evidence_.occurrences[stack];
    }
  }

  StackIndex PseudoFrame(StackIndex parent, std::string_view module, ThreadId thread) {
    const std::string name = std::string(module) + "!" + ThreadRole(dictionary(), thread);
    const auto function_at = static_cast<uint32_t>(module.size() + 1);
    return evidence_.stacks.InternStack(
        parent, evidence_.stacks.InternFrame(name, function_at, /*named=*/false));
  }

  PathNode NodeOf(const AreaEvent& at) {
    const Event* event = at.event == waitgraph::kNoEvent ? nullptr : &timelines_.event(at.event);
    const ThreadId thread = event == nullptr ? ThreadId() : event->thread;
    const ThreadId peer = event == nullptr ? ThreadId() : event->peer;
    PathNode node;
    node.wait_class = at.kind == SegmentKind::kWait ? at.wait_class : waitgraph::WaitClass::kOther;
    node.stack = brought_.Bring(at.stack);
    switch (at.kind) {
      case SegmentKind::kWait:
        node.kind = PathKind::kWait;
        if (node.stack != kNoStack) break;
        node.stack =
            PseudoFrame(PseudoFrame(kNoStack, kThreadModule, thread), kWokenByModule, peer);
        break;
      case SegmentKind::kRunning:
        node.kind = node.stack == kNoStack ? PathKind::kNotSampled : PathKind::kRunning;
        if (node.stack == kNoStack) node.stack = PseudoFrame(kNoStack, kThreadModule, thread);
        break;
      case SegmentKind::kHardware: {
        node.kind = PathKind::kHardware;
        const bool served = event != nullptr && event->kind == EventKind::kHardware;
        node.stack = PseudoFrame(kNoStack, kDeviceModule, served ? thread : peer);
        break;
      }
      case SegmentKind::kReady:
      case SegmentKind::kUnattributed:
        node.kind = event != nullptr && (event->flags & trace::kPreempted) != 0
                        ? PathKind::kPreempted
                        : PathKind::kReady;
        break;
    }
    return node;
  }

  // Rows of an instance are one per node: equal chains of stacks add up.
  void Rows(const waitgraph::Area& area, const Chosen& chosen) {
    const bool nested = options_.area.scope != waitgraph::Scope::kGraph;
    node_of_.assign(area.events.size(), kNoNode);
    std::unordered_map<NodeIndex, size_t> row_of;
    size_t at = 0;
    for (uint32_t i = 0; i < chosen.instances.size(); ++i) {
      row_of.clear();
      for (; at < area.events.size() && area.events[at].instance == i; ++at) {
        const AreaEvent& event = area.events[at];
        if (event.kind == SegmentKind::kUnattributed) continue;
        PathNode node = NodeOf(event);
        if (nested && event.parent != UINT32_MAX) node.parent = node_of_[event.parent];
        node_of_[at] = evidence_.forest.Intern(node);
        const auto [it, added] = row_of.try_emplace(node_of_[at], evidence_.rows.size());
        if (added) evidence_.rows.push_back({.node = node_of_[at]});
        PathRow& row = evidence_.rows[it->second];
        row.cost_ns += event.cost_ns;
        ++row.events;
        if (node.parent == kNoNode) evidence_.account.aoi_ns += event.cost_ns;
        if (node.kind == PathKind::kNotSampled) evidence_.account.not_sampled_ns += event.cost_ns;
        if (node.kind == PathKind::kWait && !event.stack.valid()) {
          ++evidence_.account.waits_without_stack;
        }
      }
      evidence_.instances.push_back({.trace = 0,
                                     .index = chosen.numbers[i],
                                     .scenario = chosen.scenarios[i],
                                     .dur_ns = chosen.instances[i].dur_ns(),
                                     .rows_end = evidence_.rows.size()});
      evidence_.account.area.Add(area.accounts[i]);
    }
    evidence_.occurrences.resize(evidence_.stacks.stacks());
  }

  // Several instances may have been charged for parts of one event that overlap:
  // what counts is the time that any of them was charged for.
  void CountDistinct(const waitgraph::Area& area) {
    evidence_.distinct_wait_ns.resize(evidence_.stacks.stacks());
    evidence_.distinct_run_ns.resize(evidence_.stacks.stacks());
    const auto counts = [](const AreaEvent& event) {
      return event.event != waitgraph::kNoEvent &&
             (event.kind == SegmentKind::kWait || event.kind == SegmentKind::kRunning);
    };
    // The charges by event, which are too many to sort.
    std::vector<uint32_t> ends(trace_.events.size() + 1);
    for (const AreaEvent& event : area.events) {
      if (counts(event)) ++ends[event.event + 1];
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<uint32_t> charges(ends.back());
    std::vector<uint32_t> next(ends.begin(), ends.end());
    for (uint32_t i = 0; i < area.events.size(); ++i) {
      if (counts(area.events[i])) charges[next[area.events[i].event]++] = i;
    }
    for (size_t e = 0; e < trace_.events.size(); ++e) {
      if (ends[e] == ends[e + 1]) continue;
      const std::span<uint32_t> of_event =
          std::span(charges).subspan(ends[e], ends[e + 1] - ends[e]);
      AddDistinct(node_of_[of_event.front()], UnionOf(area, of_event));
    }
  }

  // The time that these cover together.
  static int64_t UnionOf(const waitgraph::Area& area, std::span<uint32_t> charges) {
    if (charges.size() > 1) {
      std::ranges::sort(charges, {}, [&](uint32_t i) { return area.events[i].begin_ns; });
    }
    int64_t covered_ns = 0;
    int64_t until_ns = INT64_MIN;
    for (const uint32_t i : charges) {
      const int64_t begin_ns = std::max(until_ns, area.events[i].begin_ns);
      const int64_t end_ns = area.events[i].begin_ns + area.events[i].cost_ns;
      if (end_ns <= begin_ns) continue;
      covered_ns += end_ns - begin_ns;
      until_ns = end_ns;
    }
    return covered_ns;
  }

  void AddDistinct(NodeIndex index, int64_t more_ns) {
    const PathNode& node = evidence_.forest.nodes()[index];
    if (node.kind == PathKind::kWait) evidence_.distinct_wait_ns[node.stack] += more_ns;
    const bool ran = node.kind == PathKind::kRunning || node.kind == PathKind::kNotSampled;
    if (ran) evidence_.distinct_run_ns[node.stack] += more_ns;
  }

  const trace::Trace& trace_;
  const ReduceOptions& options_;
  Evidence evidence_;
  const waitgraph::Timelines& timelines_;
  DictionaryStacks brought_;
  std::unordered_map<std::string, uint32_t> scenario_ids_;
  std::vector<NodeIndex> node_of_;  // by event of the area
  int64_t total_ns_ = 0;
};

}  // namespace

std::string ThreadRole(const trace::Dictionary& dictionary, ThreadId id) {
  if (!id.valid() || id.value >= dictionary.threads().size()) return "[unknown]";
  const trace::Thread& thread = dictionary.threads()[id.value];
  const std::string name = WithoutNumbers(dictionary.Text(thread.name));
  if (!thread.process.valid()) return name;
  const std::string process =
      WithoutNumbers(dictionary.Text(dictionary.processes()[thread.process.value].name));
  if (process.empty() || process == name) return name;
  return name.empty() ? process : process + "/" + name;
}

bool IsPseudoFrame(std::string_view frame) {
  const std::string_view module = frame.substr(0, frame.find('!'));
  return module == kThreadModule || module == kWokenByModule || module == kDeviceModule;
}

Evidence ReduceTrace(const trace::Trace& trace, const std::string& name,
                     const ReduceOptions& options) {
  return ReduceTrace(waitgraph::Timelines(trace), name, options);
}

Evidence ReduceTrace(const waitgraph::Timelines& timelines, const std::string& name,
                     const ReduceOptions& options) {
  return Reducer(timelines, options).Run(name);
}

}  // namespace culprit::stackmine
