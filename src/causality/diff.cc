// SPDX-License-Identifier: Apache-2.0
#include "causality/diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/glob.h"
#include "causality/path_patterns.h"

namespace culprit::causality {
namespace {

// Instances of one scenario, before and after, in canonical order.
struct TwoSides {
  std::vector<uint32_t> before;
  std::vector<uint32_t> after;
};

DurationFacts DurationsOf(const Evidence& evidence, const std::vector<uint32_t>& instances) {
  std::vector<int64_t> durations_ns;
  for (const uint32_t i : instances) durations_ns.push_back(evidence.instances[i].dur_ns);
  return DescribeDurations(std::move(durations_ns));
}

DiffSide SideOf(const std::vector<PatternCost>& costs, uint64_t count, size_t instances) {
  DiffSide side;
  for (const PatternCost& cost : costs) AddNs(side.cost_ns, cost.cost_ns);
  side.count = count;
  side.instances = costs.size();
  side.per_instance_ns = side.cost_ns / static_cast<int64_t>(instances);
  return side;
}

// Both sides in one list, those after first: the class that is tested.
std::vector<PatternCost> Joined(const std::vector<PatternCost>& after,
                                const std::vector<PatternCost>& before, size_t offset) {
  std::vector<PatternCost> joined(after);
  for (const PatternCost& cost : before) {
    joined.push_back({cost.instance + static_cast<uint32_t>(offset), cost.cost_ns});
  }
  return joined;
}

class ScenarioComparison {
 public:
  ScenarioComparison(const Evidence& evidence, const TwoSides& sides, const DiffOptions& options)
      : evidence_(evidence), sides_(sides), options_(options), paths_(evidence, tuples_) {}

  ScenarioDiff Run(const std::string& scenario) {
    ScenarioDiff diff;
    diff.scenario = scenario;
    diff.before = DurationsOf(evidence_, sides_.before);
    diff.after = DurationsOf(evidence_, sides_.after);
    diff.mean_before_ns = diff.before.sum_ns / static_cast<int64_t>(diff.before.count);
    diff.mean_after_ns = diff.after.sum_ns / static_cast<int64_t>(diff.after.count);
    const AggregateGraph before = Aggregate(evidence_, sides_.before, options_.aggregate);
    const AggregateGraph after = Aggregate(evidence_, sides_.after, options_.aggregate);
    diff.pruned_before_ns = before.pruned_ns;
    diff.pruned_after_ns = after.pruned_ns;
    paths_.AddPaths(before);
    paths_.AddPaths(after);
    before_ = paths_.CostsIn(sides_.before);
    after_ = paths_.CostsIn(sides_.after);
    Test(diff);
    for (uint32_t i = 0; i < paths_.patterns().size(); ++i) Compare(i, diff);
    std::sort(diff.changes.begin(), diff.changes.end(),
              [](const ChainChange& a, const ChainChange& b) {
                const int64_t moved_a = std::abs(a.delta_ns);
                const int64_t moved_b = std::abs(b.delta_ns);
                return std::tie(moved_b, a.tuple) < std::tie(moved_a, b.tuple);
              });
    return diff;
  }

 private:
  void Test(ScenarioDiff& diff) {
    std::vector<bool> in_after(sides_.after.size() + sides_.before.size());
    std::fill_n(in_after.begin(), sides_.after.size(), true);
    std::vector<std::vector<PatternCost>> costs;
    for (size_t i = 0; i < paths_.patterns().size(); ++i) {
      costs.push_back(Joined(after_.costs[i], before_.costs[i], sides_.after.size()));
    }
    found_ = TestPatterns(costs, in_after, options_.significance);
    std::vector<PatternCost> durations;
    for (const auto* side : {&sides_.after, &sides_.before}) {
      for (const uint32_t i : *side) {
        durations.push_back(
            {static_cast<uint32_t>(durations.size()), evidence_.instances[i].dur_ns});
      }
    }
    diff.p_value = TestPatterns({durations}, in_after, options_.significance)[0].p_value;
  }

  Change ChangeOf(const ChainChange& chain) const {
    if (chain.before.count == 0) return Change::kAppeared;
    if (chain.after.count == 0) return Change::kVanished;
    const auto moved = static_cast<double>(std::abs(chain.delta_ns));
    const double least = options_.tolerance * static_cast<double>(chain.before.per_instance_ns);
    if (moved <= least) return Change::kSame;
    return chain.delta_ns > 0 ? Change::kGrew : Change::kShrank;
  }

  void Compare(uint32_t number, ScenarioDiff& diff) {
    ChainChange chain;
    chain.tuple = tuples_.Names(paths_.patterns()[number].tuple, evidence_);
    if (MatchingGlob(chain.tuple, options_.exceptions) < options_.exceptions.size()) {
      ++diff.exceptions;
      return;
    }
    chain.scenario = diff.scenario;
    chain.before = SideOf(before_.costs[number], before_.counts[number], sides_.before.size());
    chain.after = SideOf(after_.costs[number], after_.counts[number], sides_.after.size());
    chain.delta_ns = chain.after.per_instance_ns - chain.before.per_instance_ns;
    chain.change = ChangeOf(chain);
    chain.p_value = found_[number].p_value;
    chain.p_single = found_[number].p_single;
    chain.significant = chain.p_value <= options_.significant;
    if (chain.change == Change::kSame) {
      ++diff.same;
      return;
    }
    const bool more_after = chain.delta_ns >= 0;
    chain.examples =
        CostliestExamples(evidence_, more_after ? sides_.after : sides_.before,
                          (more_after ? after_ : before_).costs[number], options_.examples);
    diff.changes.push_back(std::move(chain));
  }

  const Evidence& evidence_;
  const TwoSides& sides_;
  const DiffOptions& options_;
  TupleTable tuples_;
  PathPatterns paths_;
  PathPatterns::Costs before_;
  PathPatterns::Costs after_;
  std::vector<Significance> found_;
};

bool IsAskedFor(const DiffOptions& options, const std::string& scenario) {
  return options.scenarios.empty() ||
         std::any_of(options.scenarios.begin(), options.scenarios.end(),
                     [&](const std::string& glob) { return MatchesGlob(glob, scenario); });
}

}  // namespace

std::string_view Name(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kAppeared:
      return "appeared";
    case Change::kGrew:
      return "grew";
    case Change::kShrank:
      return "shrank";
    case Change::kVanished:
      return "vanished";
  }
  return "";
}

Result<DiffResult> FindDifferences(const Evidence& before, const Evidence& after,
                                   const DiffOptions& options) {
  Evidence both;
  AddEvidence(before, both);
  AddEvidence(after, both);
  std::map<std::string, TwoSides> scenarios;
  for (const uint32_t i : CanonicalInstances(both)) {
    const std::string& scenario = both.scenarios[both.instances[i].scenario];
    if (!IsAskedFor(options, scenario)) continue;
    TwoSides& sides = scenarios[scenario];
    (i < before.instances.size() ? sides.before : sides.after).push_back(i);
  }
  DiffResult result;
  for (const auto& [scenario, sides] : scenarios) {
    if (sides.after.empty()) {
      result.only_before.push_back(scenario);
    } else if (sides.before.empty()) {
      result.only_after.push_back(scenario);
    } else {
      result.scenarios.push_back(ScenarioComparison(both, sides, options).Run(scenario));
    }
  }
  if (result.scenarios.empty()) {
    const auto some = [](const std::vector<std::string>& names) {
      std::string text;
      for (size_t i = 0; i < names.size() && i < 5; ++i) text += (i > 0 ? ", " : "") + names[i];
      return names.empty() ? std::string("none") : text + (names.size() > 5 ? " and more" : "");
    };
    return Error{.message = "the two sides have no scenario in common",
                 .hint = "scenarios before: " + some(result.only_before) +
                         "; after: " + some(result.only_after)};
  }
  return result;
}

}  // namespace culprit::causality
