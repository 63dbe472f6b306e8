// SPDX-License-Identifier: Apache-2.0
#include "causality/contrast.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "causality/examples.h"
#include "causality/path_patterns.h"

namespace culprit::causality {
namespace {

double PartOf(int64_t part_ns, int64_t whole_ns) {
  return whole_ns == 0 ? 0 : static_cast<double>(part_ns) / static_cast<double>(whole_ns);
}

// C/N of two patterns compared exactly: costs stay below 2^56, counts below 2^40.
bool AverageAbove(const ContrastPattern& a, const ContrastPattern& b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Wide>(a.cost_ns) * b.count > static_cast<Wide>(b.cost_ns) * a.count;
}

bool RanksBefore(const ContrastPattern& a, const ContrastPattern& b, RankBy rank) {
  if (rank == RankBy::kInstances && a.instances != b.instances) return a.instances > b.instances;
  if (rank == RankBy::kAverage) {
    if (AverageAbove(a, b)) return true;
    if (AverageAbove(b, a)) return false;
  }
  return std::tie(b.cost_ns, a.tuple) < std::tie(a.cost_ns, b.tuple);
}

class Contrasting {
 public:
  Contrasting(const Evidence& evidence, const ContrastOptions& options)
      : evidence_(evidence),
        options_(options),
        metas_(evidence, tuples_, options.max_segment),
        paths_(evidence, tuples_) {}

  Result<ContrastResult> Run() {
    result_.scenario = options_.scenario;
    CULPRIT_ASSIGN(result_.classes, ChooseClasses(evidence_, options_.scenario, options_.classes));
    const Classes& classes = result_.classes;
    result_.slow = Aggregate(evidence_, classes.slow, options_.aggregate);
    result_.fast = Aggregate(evidence_, classes.fast, options_.aggregate);
    metas_.AddSlow(result_.slow);
    metas_.AddFast(result_.fast);
    metas_.FindContrasts(classes.t_fast_ns, classes.t_slow_ns);
    result_.slow_paths = paths_.AddPaths(result_.slow);
    const size_t slow_patterns = paths_.patterns().size();
    result_.fast_paths = PathPatterns(evidence_, tuples_).AddPaths(result_.fast);
    slow_costs_ = paths_.CostsIn(classes.slow);
    fast_costs_ = FastCosts();
    for (uint32_t i = 0; i < slow_patterns; ++i) Consider(i);
    Test();
    std::sort(result_.patterns.begin(), result_.patterns.end(),
              [&](const ContrastPattern& a, const ContrastPattern& b) {
                return RanksBefore(a, b, options_.rank);
              });
    Summarize();
    return std::move(result_);
  }

 private:
  // A pattern's tuple may be that of other paths in the fast class.
  PathPatterns::Costs FastCosts() {
    PathPatterns both(evidence_, tuples_);
    both.AddPaths(result_.slow);
    both.AddPaths(result_.fast);
    return both.CostsIn(result_.classes.fast);
  }

  void Consider(uint32_t number) {
    const PathPattern& path = paths_.patterns()[number];
    const std::vector<TupleId> contrasts = metas_.ContrastsIn(path.tuple);
    if (contrasts.empty()) return;
    ContrastPattern pattern;
    pattern.tuple = tuples_.Names(path.tuple, evidence_);
    pattern.paths = path.paths;
    pattern.count = slow_costs_.counts[number];
    std::set<uint32_t> traces;
    for (const PatternCost& cost : slow_costs_.costs[number]) {
      AddNs(pattern.cost_ns, cost.cost_ns);
      pattern.most_in_instance_ns = std::max(pattern.most_in_instance_ns, cost.cost_ns);
      traces.insert(evidence_.instances[result_.classes.slow[cost.instance]].trace);
    }
    const size_t glob = MatchingGlob(pattern.tuple, options_.exceptions);
    if (glob < options_.exceptions.size()) {
      ++result_.exception_patterns;
      AddNs(result_.exception_ns, pattern.cost_ns);
      used_exceptions_.insert(glob);
      return;
    }
    pattern.instances = slow_costs_.costs[number].size();
    pattern.traces = traces.size();
    pattern.high_impact = pattern.most_in_instance_ns > result_.classes.t_slow_ns;
    pattern.fast_count = fast_costs_.counts[number];
    pattern.fast_instances = fast_costs_.costs[number].size();
    for (const PatternCost& cost : fast_costs_.costs[number]) {
      AddNs(pattern.fast_cost_ns, cost.cost_ns);
    }
    const ClassCosts costs = {pattern.cost_ns, pattern.count, pattern.fast_cost_ns,
                              pattern.fast_count};
    pattern.slow_only = costs.slow_only();
    pattern.ratio = costs.Ratio();
    pattern.why = Strongest(contrasts);
    pattern.examples = CostliestExamples(evidence_, result_.classes.slow, slow_costs_.costs[number],
                                         options_.examples);
    result_.patterns.push_back(std::move(pattern));
    numbers_.push_back(number);
  }

  MetaPattern Strongest(const std::vector<TupleId>& contrasts) const {
    MetaPattern best;
    bool any = false;
    for (const TupleId tuple : contrasts) {
      const ClassCosts& costs = metas_.costs(tuple);
      const auto key = [](const ClassCosts& c) { return std::tuple(c.slow_only(), c.slow_ns); };
      if (any && key(costs) < key(best.costs)) continue;
      SignatureTuple names = tuples_.Names(tuple, evidence_);
      if (any && key(costs) == key(best.costs) && best.tuple <= names) continue;
      best = {std::move(names), costs};
      any = true;
    }
    return best;
  }

  // Fast and slow instances together, slow ones first.
  void Test() {
    const auto slow = static_cast<uint32_t>(result_.classes.slow.size());
    std::vector<bool> in_slow(slow + result_.classes.fast.size());
    std::fill_n(in_slow.begin(), slow, true);
    std::vector<std::vector<PatternCost>> costs;
    for (const uint32_t number : numbers_) {
      costs.push_back(slow_costs_.costs[number]);
      for (const PatternCost& cost : fast_costs_.costs[number]) {
        costs.back().push_back({cost.instance + slow, cost.cost_ns});
      }
    }
    const std::vector<Significance> found = TestPatterns(costs, in_slow, options_.significance);
    for (size_t i = 0; i < found.size(); ++i) {
      result_.patterns[i].p_value = found[i].p_value;
      result_.patterns[i].p_single = found[i].p_single;
    }
  }

  void Summarize() {
    result_.meta_patterns = metas_.size();
    result_.contrasts = metas_.contrasts();
    result_.component_ns = result_.slow.root_ns;
    result_.component_share = PartOf(result_.slow.root_ns, result_.slow.instances_ns);
    result_.pruned_ns = result_.slow.pruned_ns;
    for (const ContrastPattern& pattern : result_.patterns) {
      AddNs(result_.patterns_ns, pattern.cost_ns);
      if (pattern.high_impact) AddNs(result_.impactful_ns, pattern.cost_ns);
    }
    result_.itc = PartOf(result_.impactful_ns, result_.component_ns);
    result_.ttc = PartOf(result_.patterns_ns, result_.component_ns);
    for (const uint32_t percent : {10U, 20U, 30U}) {
      RankCoverage coverage = {.percent = percent};
      coverage.patterns = (result_.patterns.size() * percent + 99) / 100;
      for (uint64_t i = 0; i < coverage.patterns; ++i) {
        AddNs(coverage.cost_ns, result_.patterns[i].cost_ns);
      }
      coverage.share = PartOf(coverage.cost_ns, result_.patterns_ns);
      result_.coverage.push_back(coverage);
    }
    for (size_t i = 0; i < options_.exceptions.size(); ++i) {
      if (used_exceptions_.count(i) == 0) {
        result_.unused_exceptions.push_back(options_.exceptions[i]);
      }
    }
    result_.max_segment = options_.max_segment;
    result_.rank = options_.rank;
    result_.significance = options_.significance;
    result_.correction = CorrectionText();
    result_.slow.nodes.clear();
    result_.fast.nodes.clear();
  }

  const Evidence& evidence_;
  const ContrastOptions& options_;
  ContrastResult result_;
  TupleTable tuples_;
  MetaPatterns metas_;
  PathPatterns paths_;
  PathPatterns::Costs slow_costs_;
  PathPatterns::Costs fast_costs_;
  std::vector<uint32_t> numbers_;  // of the patterns kept
  std::set<size_t> used_exceptions_;
};

}  // namespace

std::string_view Name(RankBy rank) {
  switch (rank) {
    case RankBy::kAverage:
      return "average";
    case RankBy::kCost:
      return "cost";
    case RankBy::kInstances:
      return "instances";
  }
  return "";
}

Result<ContrastResult> FindContrasts(const Evidence& evidence, const ContrastOptions& options) {
  return Contrasting(evidence, options).Run();
}

}  // namespace culprit::causality
