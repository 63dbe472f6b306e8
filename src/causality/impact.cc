// SPDX-License-Identifier: Apache-2.0
#include "causality/impact.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/parallel.h"
#include "causality/bootstrap.h"

namespace culprit::causality {
namespace {

double Share(int64_t part_ns, int64_t whole_ns) {
  return whole_ns == 0 ? 0 : static_cast<double>(part_ns) / static_cast<double>(whole_ns);
}

// What the instances of a scenario come to, whole and by trace.
struct ScenarioTotals {
  uint64_t instances = 0;
  uint64_t traces = 0;
  int64_t d_scn_ns = 0;
  std::vector<std::pair<uint32_t, int64_t>> by_trace;  // ascending; d_scn
};

class ImpactMeasurement {
 public:
  ImpactMeasurement(const Evidence& evidence, const ImpactOptions& options)
      : evidence_(evidence), options_(options), totals_(evidence.scenarios.size() + 1) {
    RankTraces();
    SumInstances();
  }

  ImpactResult Run() {
    ImpactResult result;
    result.seed = options_.seed;
    result.whole = Row({}, kAllScenarios, kWholeSet);
    for (const ImpactCell& cell : evidence_.cells) {
      ImpactRow row = Row(cell.times, cell.scenario, cell.component);
      const bool everywhere = cell.scenario == kAllScenarios;
      if (everywhere && cell.component == kWholeSet) {
        result.whole = std::move(row);
      } else if (everywhere) {
        result.components.push_back(std::move(row));
      } else if (cell.component == kWholeSet) {
        result.scenarios.push_back(std::move(row));
      } else {
        result.cells.push_back(std::move(row));
      }
    }
    if (options_.resamples > 0 && evidence_.traces.size() > 1) Resample(result);
    for (auto* rows : {&result.components, &result.scenarios, &result.cells}) Rank(*rows);
    result.propagated = evidence_.propagated;
    KeepMostPropagated(result.propagated);
    return result;
  }

 private:
  // Traces in order of their names, so that draws do not depend on the order of
  // merging.
  void RankTraces() {
    std::vector<uint32_t> order(evidence_.traces.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return evidence_.traces[a].name < evidence_.traces[b].name;
    });
    trace_rank_.resize(order.size());
    for (uint32_t i = 0; i < order.size(); ++i) trace_rank_[order[i]] = i;
  }

  ScenarioTotals& Totals(uint32_t scenario) {
    return scenario == kAllScenarios ? totals_.back() : totals_[scenario];
  }

  void SumInstances() {
    for (const InstanceFacts& facts : evidence_.instances) {
      for (const uint32_t scenario : {facts.scenario, kAllScenarios}) {
        ScenarioTotals& totals = Totals(scenario);
        ++totals.instances;
        AddNs(totals.d_scn_ns, facts.dur_ns);
        const uint32_t trace = trace_rank_[facts.trace];
        // Instances of a trace stand together.
        if (totals.by_trace.empty() || totals.by_trace.back().first != trace) {
          totals.by_trace.emplace_back(trace, 0);
          ++totals.traces;
        }
        AddNs(totals.by_trace.back().second, facts.dur_ns);
      }
    }
  }

  ImpactRow Row(const ImpactTimes& times, uint32_t scenario, ComponentId component) {
    const ScenarioTotals& totals = Totals(scenario);
    ImpactRow row;
    if (component < evidence_.components.size()) row.component = evidence_.components[component];
    if (scenario != kAllScenarios) row.scenario = evidence_.scenarios[scenario];
    row.instances = totals.instances;
    row.traces = totals.traces;
    row.affected_instances = times.instances;
    row.waits = times.waits;
    row.distinct_waits = times.distinct_waits;
    row.d_scn_ns = totals.d_scn_ns;
    row.d_wait_ns = times.wait_ns;
    row.d_run_ns = times.run_ns;
    row.d_waitdist_ns = times.distinct_wait_ns;
    row.ia_wait = Share(row.d_wait_ns, row.d_scn_ns);
    row.ia_run = Share(row.d_run_ns, row.d_scn_ns);
    row.ia_opt = Share(row.d_wait_ns - row.d_waitdist_ns, row.d_scn_ns);
    if (row.d_waitdist_ns > 0) row.propagation = Share(row.d_wait_ns, row.d_waitdist_ns);
    return row;
  }

  static void Rank(std::vector<ImpactRow>& rows) {
    std::sort(rows.begin(), rows.end(), [](const ImpactRow& a, const ImpactRow& b) {
      int64_t cost_a = a.d_wait_ns;
      int64_t cost_b = b.d_wait_ns;
      AddNs(cost_a, a.d_run_ns);
      AddNs(cost_b, b.d_run_ns);
      return std::tie(cost_b, a.component, a.scenario) < std::tie(cost_a, b.component, b.scenario);
    });
  }

  // The cells of one row, by trace.
  struct Sample {
    ImpactRow* row = nullptr;
    uint32_t scenario = kAllScenarios;
    std::vector<const ImpactCell*> cells;
  };

  void Resample(ImpactResult& result) {
    result.resamples = options_.resamples;
    result.confidence = options_.confidence;
    std::unordered_map<uint64_t, size_t> places;
    std::vector<Sample> samples;
    const auto add = [&](ImpactRow& row, uint32_t scenario, ComponentId component) {
      places.emplace(CellKey(scenario, component), samples.size());
      samples.push_back({&row, scenario, {}});
    };
    std::unordered_map<std::string, uint32_t> numbers;
    for (uint32_t i = 0; i < evidence_.scenarios.size(); ++i) numbers[evidence_.scenarios[i]] = i;
    std::unordered_map<std::string, ComponentId> ids;
    for (ComponentId i = 1; i < evidence_.components.size(); ++i) ids[evidence_.components[i]] = i;
    add(result.whole, kAllScenarios, kWholeSet);
    for (ImpactRow& row : result.components) add(row, kAllScenarios, ids[row.component]);
    for (ImpactRow& row : result.scenarios) add(row, numbers[row.scenario], kWholeSet);
    for (const ImpactCell& cell : evidence_.trace_cells) {
      const auto it = places.find(CellKey(cell.scenario, cell.component));
      if (it != places.end()) samples[it->second].cells.push_back(&cell);
    }
    const Bootstrap bootstrap(evidence_.traces.size(), options_.resamples, options_.seed);
    std::vector<int64_t> d_scn(options_.resamples, 0);
    for (const auto& [trace, dur_ns] : Totals(kAllScenarios).by_trace) {
      bootstrap.Add(trace, dur_ns, d_scn);
    }
    ParallelFor(samples.size(), options_.jobs,
                [&](size_t i) { Intervals(samples[i], bootstrap, d_scn); });
  }

  void Intervals(const Sample& sample, const Bootstrap& bootstrap,
                 const std::vector<int64_t>& all_d_scn) {
    const ScenarioTotals& totals = Totals(sample.scenario);
    if (totals.traces < 2) return;
    std::vector<int64_t> d_scn(all_d_scn);
    if (sample.scenario != kAllScenarios) {
      std::fill(d_scn.begin(), d_scn.end(), 0);
      for (const auto& [trace, dur_ns] : totals.by_trace) bootstrap.Add(trace, dur_ns, d_scn);
    }
    std::vector<int64_t> wait(d_scn.size(), 0);
    std::vector<int64_t> run(d_scn.size(), 0);
    std::vector<int64_t> beyond(d_scn.size(), 0);
    for (const ImpactCell* cell : sample.cells) {
      const uint32_t trace = trace_rank_[cell->trace];
      bootstrap.Add(trace, cell->times.wait_ns, wait);
      bootstrap.Add(trace, cell->times.run_ns, run);
      bootstrap.Add(trace, cell->times.wait_ns - cell->times.distinct_wait_ns, beyond);
    }
    sample.row->ia_wait_interval = Between(wait, d_scn);
    sample.row->ia_run_interval = Between(run, d_scn);
    sample.row->ia_opt_interval = Between(beyond, d_scn);
  }

  std::optional<Interval> Between(const std::vector<int64_t>& parts,
                                  const std::vector<int64_t>& wholes) const {
    std::vector<double> shares;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (wholes[i] > 0) shares.push_back(Share(parts[i], wholes[i]));
    }
    if (shares.empty()) return std::nullopt;
    std::sort(shares.begin(), shares.end());
    const auto at = [&](double quantile) {
      const double rank = std::ceil(quantile * static_cast<double>(shares.size()));
      const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
      return shares[std::min(index, shares.size() - 1)];
    };
    const double tail = (1 - options_.confidence) / 2;
    return Interval{at(tail), at(1 - tail)};
  }

  const Evidence& evidence_;
  const ImpactOptions& options_;
  std::vector<uint32_t> trace_rank_;
  std::vector<ScenarioTotals> totals_;  // by scenario, then of all
};

}  // namespace

ImpactResult MeasureImpact(const Evidence& evidence, const ImpactOptions& options) {
  return ImpactMeasurement(evidence, options).Run();
}

}  // namespace culprit::causality
