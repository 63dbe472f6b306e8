// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cli/causality_text.h"
#include "cli/diff_report.h"

namespace culprit::cli {
namespace {

using causality::ChainChange;
using causality::Change;
using causality::ScenarioDiff;

bool Exceeds(int64_t delta_ns, int64_t before_ns, double bound) {
  return delta_ns > 0 && static_cast<double>(delta_ns) > bound * static_cast<double>(before_ns);
}

}  // namespace

std::vector<DiffViolation> FindDiffViolations(const DiffFacts& facts) {
  std::vector<DiffViolation> violations;
  const double bound = *facts.bound;
  for (const ScenarioDiff& scenario : facts.result.scenarios) {
    const int64_t before_ns = scenario.mean_before_ns;
    const int64_t slower_ns = scenario.mean_after_ns - before_ns;
    if (scenario.p_value <= facts.significant && Exceeds(slower_ns, before_ns, bound)) {
      violations.push_back({.scenario = scenario.scenario,
                            .what = "slower",
                            .delta_ns = slower_ns,
                            .before_ns = before_ns});
    }
    for (const ChainChange& change : scenario.changes) {
      const bool more = change.change == Change::kAppeared || change.change == Change::kGrew;
      if (!more || !change.significant || !Exceeds(change.delta_ns, before_ns, bound)) continue;
      std::string example;
      if (!change.examples.empty()) {
        example =
            facts.after.ShowLine(change.examples.front().trace, change.examples.front().index);
      }
      violations.push_back({.scenario = scenario.scenario,
                            .what = std::string(Name(change.change)),
                            .delta_ns = change.delta_ns,
                            .before_ns = before_ns,
                            .chain = TupleLine(change.tuple),
                            .example = std::move(example)});
    }
  }
  std::stable_sort(
      violations.begin(), violations.end(),
      [](const DiffViolation& a, const DiffViolation& b) { return a.delta_ns > b.delta_ns; });
  return violations;
}

}  // namespace culprit::cli
