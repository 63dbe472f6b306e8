// SPDX-License-Identifier: Apache-2.0
#include "causality/extract.h"

#include <algorithm>
#include <unordered_map>

#include "base/glob.h"
#include "causality/chain_walk.h"
#include "causality/top_level.h"
#include "causality/wait_ledger.h"
#include "waitgraph/timelines.h"
#include "waitgraph/wait_graph.h"

namespace culprit::causality {
namespace {

using trace::Event;
using trace::EventKind;
using trace::Instance;
using waitgraph::GraphNode;

// Longer ones are damage; no sane machine ran as long.
constexpr int64_t kLongestNs = int64_t{1} << 56;

bool PassesGlobs(const std::vector<std::string>& globs, std::string_view text) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return MatchesGlob(glob, text);
         });
}

class Extraction {
 public:
  Extraction(const waitgraph::Timelines& timelines, const ExtractOptions& options)
      : trace_(timelines.trace()),
        options_(options),
        timelines_(timelines),
        components_(trace_, options.component, sets_),
        builder_(timelines_),
        top_level_(timelines_, components_, idle_, sets_),
        walk_(timelines_, components_, top_level_, evidence_.signatures, evidence_.forest),
        ledger_(timelines_, sets_) {}

  Evidence Run(const std::string& name) {
    const bool automatic = options_.always_automatic || trace_.instances.empty();
    evidence_.traces.push_back(
        {.name = name, .automatic = automatic, .events = trace_.events.size()});
    evidence_.components = components_.names();
    evidence_.not_chosen = components_.not_chosen();
    evidence_.account.events = trace_.events.size();
    if (automatic) {
      FoundInstances();
    } else {
      OwnInstances();
    }
    evidence_.account.truncated_instances = static_cast<uint64_t>(
        std::count_if(evidence_.instances.begin(), evidence_.instances.end(),
                      [](const InstanceFacts& facts) { return facts.truncated; }));
    if (options_.impact) CloseLedger(name);
    evidence_.diagnostics.Merge(trace_.diagnostics);
    return std::move(evidence_);
  }

 private:
  void OwnInstances() {
    for (uint32_t i = 0; i < trace_.instances.size(); ++i) {
      Look(trace_.instances[i], i, trace_.dictionary.Text(trace_.instances[i].scenario));
    }
  }

  void FoundInstances() {
    waitgraph::AutoInstances found = FindInstances(timelines_, options_.automatic);
    idle_ = std::move(found.idle_wait);
    for (uint32_t i = 0; i < found.instances.size(); ++i) {
      Look(found.instances[i], i, found.scenarios[found.instances[i].scenario.value]);
    }
    evidence_.account.idle_ns = found.idle_ns;
  }

  // Clipped to the recording; false if nothing is left.
  bool MakePossible(Instance& instance) {
    instance.t0_ns = std::max(instance.t0_ns, trace_.metadata.begin_ns);
    instance.t1_ns = std::min(instance.t1_ns, trace_.metadata.end_ns);
    if (instance.thread.value >= trace_.dictionary.threads().size()) {
      evidence_.diagnostics.Count("instance of a thread that is not in the trace");
      return false;
    }
    const bool possible = instance.t0_ns > -kLongestNs && instance.t1_ns < 64 * kLongestNs &&
                          instance.t0_ns < instance.t1_ns && instance.dur_ns() <= kLongestNs;
    if (!possible)
      evidence_.diagnostics.Count("instance outside the recording or without duration");
    return possible;
  }

  uint32_t ScenarioNumber(std::string_view scenario) {
    const auto next = static_cast<uint32_t>(evidence_.scenarios.size());
    const auto [it, added] = evidence_.scenario_index.try_emplace(std::string(scenario), next);
    if (added) evidence_.scenarios.emplace_back(scenario);
    return it->second;
  }

  void Look(Instance instance, uint32_t index, std::string_view scenario) {
    if (!PassesGlobs(options_.scenarios, scenario)) {
      ++evidence_.account.instances_left_out;
      return;
    }
    if (!MakePossible(instance)) return;
    InstanceFacts facts;
    facts.index = index;
    facts.scenario = ScenarioNumber(scenario);
    facts.dur_ns = instance.dur_ns();
    builder_.Build(instance, graph_);
    top_level_.Find(graph_, instance.t1_ns);
    evidence_.account.nodes += graph_.nodes.size();
    if (options_.impact) Measure(facts);
    if (options_.chains && PassesGlobs(options_.chain_scenarios, scenario)) {
      facts.truncated = !walk_.Walk(graph_, options_.max_chain_events, evidence_.rows.memory());
      evidence_.account.chain_events += walk_.events();
    }
    facts.rows_end = evidence_.rows.size();
    evidence_.instances.push_back(facts);
  }

  void Measure(const InstanceFacts& facts) {
    ledger_.BeginInstance(static_cast<uint32_t>(evidence_.instances.size()), facts.scenario);
    for (const uint32_t i : top_level_.waits()) {
      if (!top_level_.reached(i)) continue;
      const SetId counted = sets_.Difference(top_level_.own(i), top_level_.passed(i));
      if (counted == kEmptySet) continue;
      const GraphNode& node = graph_.nodes[i];
      ledger_.CountWait(node.event, counted, node.begin_ns, node.end_ns);
    }
    for (const GraphNode& node : graph_.nodes) {
      const Event& event = timelines_.event(node.event);
      if (event.kind == EventKind::kReady) {
        AddNs(evidence_.account.ready_ns, node.dur_ns());
      } else if (event.kind == EventKind::kRunning) {
        const SetId set = components_.ComponentsOf(event.stack, event.thread);
        if (set != kEmptySet) ledger_.CountRun(set, node.dur_ns());
      } else if (event.kind == EventKind::kWait && !event.stack.valid()) {
        ++evidence_.account.waits_without_stack;
      }
    }
    ledger_.EndInstance();
  }

  void CloseLedger(const std::string& name) {
    evidence_.cells = ledger_.Close();
    for (ImpactCell cell : evidence_.cells) {
      if (cell.scenario != kAllScenarios && cell.component != kWholeSet) continue;
      cell.trace = 0;
      evidence_.trace_cells.push_back(cell);
    }
    for (const SharedWait& shared : ledger_.shared()) {
      evidence_.propagated.push_back(Describe(shared, name));
    }
    KeepMostPropagated(evidence_.propagated);
  }

  PropagatedWait Describe(const SharedWait& shared, const std::string& name) {
    const Event& event = timelines_.event(shared.event);
    PropagatedWait wait;
    wait.trace = name;
    wait.thread = trace_.dictionary.ThreadLabel(event.thread);
    wait.waker = trace_.dictionary.ThreadLabel(event.peer);
    wait.signature = evidence_.Signature(walk_.SignatureOf(event.stack, event.thread));
    wait.unwait_signature = evidence_.Signature(walk_.UnwaitSignatureOf(shared.event));
    wait.begin_ns = event.time_ns - trace_.metadata.begin_ns;
    wait.dur_ns = event.dur_ns;
    wait.instances = shared.instances;
    wait.charged_ns = shared.charged_ns;
    wait.distinct_ns = shared.distinct_ns;
    for (const uint32_t place : shared.places) {
      wait.instance_indexes.push_back(evidence_.instances[place].index);
    }
    std::sort(wait.instance_indexes.begin(), wait.instance_indexes.end());
    return wait;
  }

  const trace::Trace& trace_;
  const ExtractOptions& options_;
  Evidence evidence_;
  SetTable sets_;
  const waitgraph::Timelines& timelines_;
  ComponentTable components_;
  std::vector<bool> idle_;  // by event; empty unless instances were found
  waitgraph::WaitGraphBuilder builder_;
  waitgraph::WaitGraph graph_;
  TopLevelWaits top_level_;
  ChainWalk walk_;
  WaitLedger ledger_;
};

}  // namespace

Evidence ExtractTrace(const trace::Trace& trace, const std::string& name,
                      const ExtractOptions& options) {
  return ExtractTrace(waitgraph::Timelines(trace), name, options);
}

Evidence ExtractTrace(const waitgraph::Timelines& timelines, const std::string& name,
                      const ExtractOptions& options) {
  return Extraction(timelines, options).Run(name);
}

}  // namespace culprit::causality
