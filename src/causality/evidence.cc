// SPDX-License-Identifier: Apache-2.0
#include "causality/evidence.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "causality/propagated_wait.h"

namespace culprit::causality {
namespace {

// Numbers of `from` in `to`, by name; what is new is appended.
std::vector<uint32_t> MergeNames(const std::vector<std::string>& from, std::vector<std::string>& to,
                                 std::unordered_map<std::string, uint32_t>& index) {
  std::vector<uint32_t> numbers;
  for (const std::string& name : from) {
    const auto [it, added] = index.try_emplace(name, static_cast<uint32_t>(to.size()));
    if (added) to.push_back(name);
    numbers.push_back(it->second);
  }
  return numbers;
}

// The whole set stands apart: a module may have the name of the glob.
std::vector<uint32_t> MergeComponents(const std::vector<std::string>& from, Evidence& sum) {
  if (from.empty()) return {};
  if (sum.components.empty()) sum.components.push_back(from[kWholeSet]);
  for (auto i = static_cast<uint32_t>(sum.component_index.size() + 1); i < sum.components.size();
       ++i) {
    sum.component_index.emplace(sum.components[i], i);
  }
  std::vector<uint32_t> numbers =
      MergeNames({from.begin() + 1, from.end()}, sum.components, sum.component_index);
  numbers.insert(numbers.begin(), kWholeSet);
  return numbers;
}

std::vector<SignatureId> MergeSignatures(const StringTable& from, StringTable& to) {
  std::vector<SignatureId> numbers;
  for (size_t i = 0; i < from.size(); ++i) {
    numbers.push_back(to.Intern(from.Get(StringId(i))).value);
  }
  return numbers;
}

std::vector<ChainIndex> MergeForests(const ChainForest& from,
                                     const std::vector<SignatureId>& signatures, ChainForest& to) {
  const auto renumber = [&](SignatureId id) {
    return id == kNoSignature ? kNoSignature : signatures[id];
  };
  std::vector<ChainIndex> numbers;
  numbers.reserve(from.nodes().size());
  for (ChainNode node : from.nodes()) {
    if (node.parent != kNoChain) node.parent = numbers[node.parent];
    node.first = renumber(node.first);
    node.second = renumber(node.second);
    numbers.push_back(to.Intern(node));
  }
  return numbers;
}

void MergeCells(const Evidence& part, const std::vector<uint32_t>& scenarios,
                const std::vector<uint32_t>& components, uint32_t first_trace, Evidence& sum) {
  const auto scenario_of = [&](const ImpactCell& cell) {
    return cell.scenario == kAllScenarios ? kAllScenarios : scenarios[cell.scenario];
  };
  for (auto i = static_cast<uint32_t>(sum.cell_index.size()); i < sum.cells.size(); ++i) {
    sum.cell_index.emplace(CellKey(sum.cells[i].scenario, sum.cells[i].component), i);
  }
  for (ImpactCell cell : part.cells) {
    cell.scenario = scenario_of(cell);
    cell.component = components[cell.component];
    const auto next = static_cast<uint32_t>(sum.cells.size());
    const auto [it, added] =
        sum.cell_index.try_emplace(CellKey(cell.scenario, cell.component), next);
    if (added) {
      sum.cells.push_back(cell);
    } else {
      sum.cells[it->second].times.Add(cell.times);
    }
  }
  for (ImpactCell cell : part.trace_cells) {
    cell.trace += first_trace;
    cell.scenario = scenario_of(cell);
    cell.component = components[cell.component];
    sum.trace_cells.push_back(cell);
  }
}

}  // namespace

void ImpactTimes::Add(const ImpactTimes& other) {
  AddNs(wait_ns, other.wait_ns);
  AddNs(run_ns, other.run_ns);
  AddNs(distinct_wait_ns, other.distinct_wait_ns);
  waits += other.waits;
  distinct_waits += other.distinct_waits;
  instances += other.instances;
}

void ExtractAccount::Add(const ExtractAccount& other) {
  events += other.events;
  nodes += other.nodes;
  chain_events += other.chain_events;
  AddNs(ready_ns, other.ready_ns);
  truncated_instances += other.truncated_instances;
  instances_left_out += other.instances_left_out;
  waits_without_stack += other.waits_without_stack;
  AddNs(idle_ns, other.idle_ns);
}

std::string Evidence::InstanceName(size_t instance) const {
  const InstanceFacts& facts = instances[instance];
  return traces[facts.trace].name + ":" + std::to_string(facts.index);
}

std::string_view Evidence::Signature(SignatureId id) const {
  return id == kNoSignature ? std::string_view() : signatures.Get(StringId(id));
}

void AddEvidence(const Evidence& part, Evidence& sum) {
  const auto first_trace = static_cast<uint32_t>(sum.traces.size());
  const uint64_t first_row = sum.rows.size();
  const std::vector<uint32_t> scenarios =
      MergeNames(part.scenarios, sum.scenarios, sum.scenario_index);
  const std::vector<uint32_t> components = MergeComponents(part.components, sum);
  const std::vector<ChainIndex> chains =
      MergeForests(part.forest, MergeSignatures(part.signatures, sum.signatures), sum.forest);
  for (ChainRow row : part.rows) {
    row.node = chains[row.node];
    sum.rows.push_back(row);
  }
  for (InstanceFacts facts : part.instances) {
    facts.trace += first_trace;
    facts.scenario = scenarios[facts.scenario];
    facts.rows_end += first_row;
    sum.instances.push_back(facts);
  }
  sum.traces.insert(sum.traces.end(), part.traces.begin(), part.traces.end());
  MergeCells(part, scenarios, components, first_trace, sum);
  sum.propagated.insert(sum.propagated.end(), part.propagated.begin(), part.propagated.end());
  KeepMostPropagated(sum.propagated);
  std::vector<std::string> passed;
  std::set_union(sum.not_chosen.begin(), sum.not_chosen.end(), part.not_chosen.begin(),
                 part.not_chosen.end(), std::back_inserter(passed));
  sum.not_chosen = std::move(passed);
  sum.account.Add(part.account);
  sum.diagnostics.Merge(part.diagnostics);
  sum.unreadable.insert(sum.unreadable.end(), part.unreadable.begin(), part.unreadable.end());
}

std::vector<uint32_t> CanonicalInstances(const Evidence& evidence, uint32_t scenario) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < evidence.instances.size(); ++i) {
    if (scenario == kAllScenarios || evidence.instances[i].scenario == scenario) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const InstanceFacts& left = evidence.instances[a];
    const InstanceFacts& right = evidence.instances[b];
    if (left.trace == right.trace) return left.index < right.index;
    // Equal names stand in the order of merging.
    const int names = evidence.traces[left.trace].name.compare(evidence.traces[right.trace].name);
    return names != 0 ? names < 0 : left.trace < right.trace;
  });
  return order;
}

}  // namespace culprit::causality
