// SPDX-License-Identifier: Apache-2.0
#include "causality/examples.h"

#include <algorithm>

namespace culprit::causality {

std::vector<Example> CostliestExamples(const Evidence& evidence,
                                       const std::vector<uint32_t>& instances,
                                       const std::vector<PatternCost>& costs, size_t count) {
  std::vector<PatternCost> best(costs);
  count = std::min(count, best.size());
  // Positions are in canonical order, so they settle ties by name.
  std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count), best.end(),
                    [](const PatternCost& a, const PatternCost& b) {
                      return a.cost_ns != b.cost_ns ? a.cost_ns > b.cost_ns
                                                    : a.instance < b.instance;
                    });
  std::vector<Example> examples;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t instance = instances[best[i].instance];
    const InstanceFacts& facts = evidence.instances[instance];
    examples.push_back({.instance = evidence.InstanceName(instance),
                        .trace = evidence.traces[facts.trace].name,
                        .index = facts.index,
                        .cost_ns = best[i].cost_ns,
                        .dur_ns = facts.dur_ns});
  }
  return examples;
}

}  // namespace culprit::causality
