// SPDX-License-Identifier: Apache-2.0
#include "stackmine/reduce.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/flat_map.h"
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
constexpr uint32_t kNoCharge = UINT32_MAX;

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
    PutInOrder();
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
    const std::span<const uint32_t> counts = timelines_.stack_uses();
    evidence_.occurrences.reserve(counts.size());
    for (uint32_t s = 0; s < counts.size(); ++s) {
      if (counts[s] == 0) continue;
      const StackIndex stack = brought_.Bring(trace::StackId(s));
      if (stack >= evidence_.occurrences.size()) evidence_.occurrences.resize(stack + 1);
      evidence_.occurrences[stack] += counts[s];
    }
  }

  // So that evidence does not depend on the order of the trace's dictionary or events,
  // and summaries can tell stacks by a table that they share.
  void PutInOrder() {
    const std::vector<StackIndex> numbers = evidence_.stacks.MakeCanonical();
    const auto put = [&](auto& column) {
      auto old = std::move(column);
      column = {};
      column.resize(old.size());
      for (StackIndex s = 0; s < old.size(); ++s) column[numbers[s]] = old[s];
    };
    put(evidence_.occurrences);
    put(evidence_.distinct_wait_ns);
    put(evidence_.distinct_run_ns);
    evidence_.forest.RenumberStacks(numbers);
  }

  enum Pseudo : uint8_t { kThreadFrame, kWokenByFrame, kDeviceFrame, kPseudoFrames };

  StackIndex PseudoFrame(StackIndex parent, Pseudo pseudo, ThreadId thread) {
    static constexpr std::array<std::string_view, kPseudoFrames> kModules = {
        kThreadModule, kWokenByModule, kDeviceModule};
    const auto [stack, added] = pseudo_[pseudo].Insert(uint64_t{parent} << 32 | thread.value);
    if (!added) return *stack;
    const std::string_view module = kModules[pseudo];
    const std::string name = std::string(module) + "!" + ThreadRole(dictionary(), thread);
    const auto function_at = static_cast<uint32_t>(module.size() + 1);
    const size_t frames_before = evidence_.stacks.frames();
    const FrameSymbol frame = evidence_.stacks.InternFrame(name, function_at, /*named=*/false);
    if (frame == frames_before) pseudo_symbols_.Insert(frame);
    *stack = PseudoStack(parent, frame);
    return *stack;
  }

  // Threads of one role share it. The table need not be searched as long as nothing
  // but pseudo-frames has the name.
  StackIndex PseudoStack(StackIndex parent, FrameSymbol frame) {
    if (!brought_.all_distinct() || pseudo_symbols_.Find(frame) == nullptr) {
      brought_.ExpectOthers();
      return evidence_.stacks.InternStack(parent, frame);
    }
    const auto [stack, added] = pseudo_stacks_.Insert(uint64_t{parent} << 32 | frame);
    if (added) *stack = evidence_.stacks.AppendStack(parent, frame);
    return *stack;
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
        node.stack = PseudoFrame(PseudoFrame(kNoStack, kThreadFrame, thread), kWokenByFrame, peer);
        break;
      case SegmentKind::kRunning:
        node.kind = node.stack == kNoStack ? PathKind::kNotSampled : PathKind::kRunning;
        if (node.stack == kNoStack) node.stack = PseudoFrame(kNoStack, kThreadFrame, thread);
        break;
      case SegmentKind::kHardware: {
        node.kind = PathKind::kHardware;
        const bool served = event != nullptr && event->kind == EventKind::kHardware;
        node.stack = PseudoFrame(kNoStack, kDeviceFrame, served ? thread : peer);
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

  // Of how many waits it is the sum; 0: of none.
  int64_t SumOf(const AreaEvent& at) const {
    if (at.kind != SegmentKind::kWait || at.event == waitgraph::kNoEvent) return 0;
    const Event& event = timelines_.event(at.event);
    return trace::IsSumOfWaits(event) ? event.arg0 : 0;
  }

  // Rows of an instance are one per node: equal chains of stacks add up.
  void Rows(const waitgraph::Area& area, const Chosen& chosen) {
    const bool nested = options_.area.scope != waitgraph::Scope::kGraph;
    node_of_.assign(area.events.size(), kNoNode);
    std::vector<uint64_t> row_of;  // by node, of the last instance that had it
    size_t at = 0;
    for (uint32_t i = 0; i < chosen.instances.size(); ++i) {
      const uint64_t first_row = evidence_.rows.size();
      for (; at < area.events.size() && area.events[at].instance == i; ++at) {
        const AreaEvent& event = area.events[at];
        if (event.kind == SegmentKind::kUnattributed) continue;
        PathNode node = NodeOf(event);
        if (nested && event.parent != UINT32_MAX) node.parent = node_of_[event.parent];
        node_of_[at] = evidence_.forest.Intern(node);
        if (node_of_[at] >= row_of.size()) row_of.resize(node_of_[at] + 1, UINT64_MAX);
        uint64_t& place = row_of[node_of_[at]];
        if (place == UINT64_MAX || place < first_row) {
          place = evidence_.rows.size();
          evidence_.rows.push_back({.node = node_of_[at]});
        }
        PathRow& row = evidence_.rows[place];
        row.cost_ns += event.cost_ns;
        const int64_t sum_of = SumOf(event);
        const int64_t events = row.events + std::clamp<int64_t>(sum_of, 1, UINT32_MAX);
        row.events = static_cast<uint32_t>(std::min<int64_t>(events, UINT32_MAX));
        if (sum_of > 0) evidence_.account.summed_wait_ns += event.cost_ns;
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
    // The charges of an event form a chain from its last to its first one.
    std::vector<uint32_t> last(trace_.events.size(), kNoCharge);
    std::vector<uint32_t> before(area.events.size(), kNoCharge);
    for (uint32_t i = 0; i < area.events.size(); ++i) {
      if (counts(area.events[i])) before[i] = std::exchange(last[area.events[i].event], i);
    }
    std::vector<uint32_t> charges;
    for (const AreaEvent& event : area.events) {
      if (!counts(event) || last[event.event] == kNoCharge) continue;
      charges.clear();
      for (uint32_t i = last[event.event]; i != kNoCharge; i = before[i]) charges.push_back(i);
      last[event.event] = kNoCharge;
      std::reverse(charges.begin(), charges.end());
      const NodeIndex node = node_of_[charges.front()];
      AddDistinct(node, UnionOf(area, charges));
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
  // The stacks of pseudo-frames, by parent << 32 | thread.
  std::array<FlatMap<uint64_t, StackIndex>, kPseudoFrames> pseudo_;
  FlatMap<uint64_t, StackIndex> pseudo_stacks_;  // by parent << 32 | frame
  FlatMap<FrameSymbol, bool> pseudo_symbols_;    // of names that no stack had before
  std::vector<NodeIndex> node_of_;               // by event of the area
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
