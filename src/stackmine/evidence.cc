// SPDX-License-Identifier: Apache-2.0
#include "stackmine/evidence.h"

namespace culprit::stackmine {
namespace {

std::vector<NodeIndex> BringNodes(const PathForest& from, const std::vector<StackIndex>& stacks,
                                  PathForest& to) {
  std::vector<NodeIndex> nodes(from.nodes().size());
  for (NodeIndex n = 0; n < nodes.size(); ++n) {
    PathNode node = from.nodes()[n];
    if (node.parent != kNoNode) node.parent = nodes[node.parent];
    if (node.stack != kNoStack) node.stack = stacks[node.stack];
    nodes[n] = to.Intern(node);
  }
  return nodes;
}

std::vector<uint32_t> BringScenarios(const std::vector<std::string>& from, Evidence& sum) {
  std::vector<std::string>& to = sum.scenarios;
  // Behind only where the sum began as a part.
  for (auto i = static_cast<uint32_t>(sum.scenario_index.size()); i < to.size(); ++i) {
    sum.scenario_index.emplace(to[i], i);
  }
  std::vector<uint32_t> ids;
  for (const std::string& scenario : from) {
    const auto next = static_cast<uint32_t>(to.size());
    const auto [it, added] = sum.scenario_index.try_emplace(scenario, next);
    if (added) to.push_back(scenario);
    ids.push_back(it->second);
  }
  return ids;
}

void AddRoles(const Evidence& part, Evidence& sum) {
  for (const auto& [key, role] : part.roles) {
    const auto [it, added] = sum.roles.try_emplace(key, role);
    if (added) continue;
    it->second.threads += role.threads;
    it->second.instances += role.instances;
    it->second.instance_ns += role.instance_ns;
    it->second.idle_ns += role.idle_ns;
  }
}

}  // namespace

void Account::Add(const Account& other) {
  area.Add(other.area);
  not_sampled_ns += other.not_sampled_ns;
  aoi_ns += other.aoi_ns;
  summed_wait_ns += other.summed_wait_ns;
  waits_without_stack += other.waits_without_stack;
  instances_left_out += other.instances_left_out;
  instances_left_out_ns += other.instances_left_out_ns;
  idle_ns += other.idle_ns;
  idle_threads_ns += other.idle_threads_ns;
  idle_threads += other.idle_threads;
}

std::string Evidence::InstanceName(size_t instance) const {
  const InstanceFacts& facts = instances[instance];
  return traces[facts.trace].name + ":" + std::to_string(facts.index);
}

void AddEvidence(const Evidence& part, Evidence& sum) {
  const std::vector<StackIndex> stacks = BringAll(part.stacks, sum.stacks);
  sum.occurrences.resize(sum.stacks.stacks());
  sum.distinct_wait_ns.resize(sum.stacks.stacks());
  sum.distinct_run_ns.resize(sum.stacks.stacks());
  for (StackIndex s = 0; s < stacks.size(); ++s) {
    sum.occurrences[stacks[s]] += part.occurrences[s];
    sum.distinct_wait_ns[stacks[s]] += part.distinct_wait_ns[s];
    sum.distinct_run_ns[stacks[s]] += part.distinct_run_ns[s];
  }
  const std::vector<NodeIndex> nodes = BringNodes(part.forest, stacks, sum.forest);
  const std::vector<uint32_t> scenarios = BringScenarios(part.scenarios, sum);
  const uint64_t rows_before = sum.rows.size();
  const auto traces_before = static_cast<uint32_t>(sum.traces.size());
  for (const PathRow& row : part.rows) {
    sum.rows.push_back({nodes[row.node], row.events, row.cost_ns});
  }
  for (InstanceFacts facts : part.instances) {
    facts.trace += traces_before;
    facts.scenario = scenarios[facts.scenario];
    facts.rows_end += rows_before;
    sum.instances.push_back(facts);
  }
  sum.traces.insert(sum.traces.end(), part.traces.begin(), part.traces.end());
  AddRoles(part, sum);
  sum.account.Add(part.account);
  sum.diagnostics.Merge(part.diagnostics);
  sum.unreadable.insert(sum.unreadable.end(), part.unreadable.begin(), part.unreadable.end());
}

}  // namespace culprit::stackmine
