// SPDX-License-Identifier: Apache-2.0
#include "causality/classes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"

namespace culprit::causality {
namespace {

// Chosen thresholds: a gap must be as wide as this, and have as many beyond it.
constexpr int64_t kClearGap = 2;
constexpr size_t kFewestSlow = 3;

int64_t Of(const Threshold& threshold, const std::vector<int64_t>& sorted) {
  return threshold.kind == Threshold::Kind::kDuration ? threshold.dur_ns
                                                      : Percentile(sorted, threshold.percentile);
}

// Instances that something struck stand apart from the rest. Where there is a gap
// across which durations at least double, that is a better border than any
// percentile. Not among the shortest quarter: those are often no work at all.
// Returns how many lie below the widest such gap; 0: there is none.
size_t ClearGap(const std::vector<int64_t>& sorted) {
  size_t best = 0;
  double best_ratio = kClearGap;
  for (size_t i = sorted.size() / 4; i + kFewestSlow < sorted.size(); ++i) {
    const double ratio =
        static_cast<double>(sorted[i + 1]) / static_cast<double>(std::max<int64_t>(sorted[i], 1));
    if (ratio < best_ratio || (best != 0 && ratio == best_ratio)) continue;
    best_ratio = ratio;
    best = i + 1;
  }
  return best;
}

void Choose(const std::vector<int64_t>& sorted, const ClassOptions& options, Classes& classes) {
  const bool fast_chosen = options.fast.kind == Threshold::Kind::kChosen;
  const bool slow_chosen = options.slow.kind == Threshold::Kind::kChosen;
  classes.chosen = fast_chosen || slow_chosen;
  const size_t below = slow_chosen ? ClearGap(sorted) : 0;
  if (fast_chosen) {
    classes.t_fast_ns = Percentile(sorted, 50);
    classes.why = "the fast threshold is p50";
    if (below != 0 && sorted[below - 1] < classes.t_fast_ns) {
      classes.t_fast_ns = sorted[below - 1] + 1;
      classes.why = "the fast threshold lies just below the gap";
    }
  } else {
    classes.t_fast_ns = Of(options.fast, sorted);
  }
  if (!slow_chosen) {
    classes.t_slow_ns = Of(options.slow, sorted);
    return;
  }
  if (fast_chosen) classes.why += ", ";
  if (below == 0) {
    classes.t_slow_ns = Percentile(sorted, 90);
    classes.why += "the slow threshold is p90";
    return;
  }
  classes.t_slow_ns = sorted[below - 1] + (sorted[below] - sorted[below - 1]) / 2;
  classes.why += "the slow threshold lies in the widest gap between durations, from " +
                 FormatDuration(sorted[below - 1]) + " to " + FormatDuration(sorted[below]);
}

std::string Suggestion(const DurationFacts& facts) {
  return "the " + FormatCount(facts.count) + " instances last " + FormatDuration(facts.min_ns) +
         " to " + FormatDuration(facts.max_ns) + ", half of them at most " +
         FormatDuration(facts.p50_ns) + " (p50) and nine of ten at most " +
         FormatDuration(facts.p90_ns) + " (p90); try --fast p50 --slow p90";
}

Error NoScenario(const Evidence& evidence, const std::string& scenario) {
  std::string hint;
  size_t named = 0;
  for (const ScenarioFacts& facts : DescribeScenarios(evidence)) {
    if (++named > 8) break;
    hint += (hint.empty() ? "there are " : ", ") + facts.name + " (" +
            FormatCount(facts.durations.count) + ")";
  }
  if (named > 8) hint += " and more";
  return Error{.message = "no instance of scenario '" + scenario + "'", .hint = hint};
}

}  // namespace

std::optional<Threshold> ParseThreshold(std::string_view text) {
  if (text == "auto") return Threshold{};
  if (text.starts_with("p")) {
    const std::optional<double> percentile = ParseDouble(text.substr(1));
    if (!percentile || !(*percentile > 0 && *percentile < 100)) return std::nullopt;
    return Threshold{.kind = Threshold::Kind::kPercentile, .percentile = *percentile};
  }
  const std::optional<int64_t> dur_ns = ParseDuration(text);
  if (!dur_ns || *dur_ns <= 0) return std::nullopt;
  return Threshold{.kind = Threshold::Kind::kDuration, .dur_ns = *dur_ns};
}

int64_t Percentile(const std::vector<int64_t>& sorted, double percentile) {
  const double rank = std::ceil(percentile / 100 * static_cast<double>(sorted.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

DurationFacts DescribeDurations(std::vector<int64_t> durations_ns) {
  DurationFacts facts;
  if (durations_ns.empty()) return facts;
  std::sort(durations_ns.begin(), durations_ns.end());
  facts.count = durations_ns.size();
  for (const int64_t dur_ns : durations_ns) AddNs(facts.sum_ns, dur_ns);
  facts.min_ns = durations_ns.front();
  facts.max_ns = durations_ns.back();
  facts.p10_ns = Percentile(durations_ns, 10);
  facts.p25_ns = Percentile(durations_ns, 25);
  facts.p50_ns = Percentile(durations_ns, 50);
  facts.p75_ns = Percentile(durations_ns, 75);
  facts.p90_ns = Percentile(durations_ns, 90);
  facts.p95_ns = Percentile(durations_ns, 95);
  facts.p99_ns = Percentile(durations_ns, 99);
  return facts;
}

std::vector<ScenarioFacts> DescribeScenarios(const Evidence& evidence) {
  std::vector<std::vector<int64_t>> durations(evidence.scenarios.size());
  for (const InstanceFacts& facts : evidence.instances) {
    durations[facts.scenario].push_back(facts.dur_ns);
  }
  std::vector<ScenarioFacts> all;
  for (size_t i = 0; i < durations.size(); ++i) {
    all.push_back({evidence.scenarios[i], DescribeDurations(std::move(durations[i]))});
  }
  std::sort(all.begin(), all.end(), [](const ScenarioFacts& a, const ScenarioFacts& b) {
    return a.durations.count != b.durations.count ? a.durations.count > b.durations.count
                                                  : a.name < b.name;
  });
  return all;
}

Result<Classes> ChooseClasses(const Evidence& evidence, const std::string& scenario,
                              const ClassOptions& options) {
  std::vector<uint32_t> members;
  std::vector<int64_t> sorted;
  const auto named = std::find(evidence.scenarios.begin(), evidence.scenarios.end(), scenario);
  if (named != evidence.scenarios.end()) {
    members =
        CanonicalInstances(evidence, static_cast<uint32_t>(named - evidence.scenarios.begin()));
  }
  for (const uint32_t i : members) sorted.push_back(evidence.instances[i].dur_ns);
  if (members.empty()) return NoScenario(evidence, scenario);
  std::sort(sorted.begin(), sorted.end());
  Classes classes;
  classes.durations = DescribeDurations(sorted);
  Choose(sorted, options, classes);
  const std::string borders = "fast under " + FormatDuration(classes.t_fast_ns) + ", slow over " +
                              FormatDuration(classes.t_slow_ns);
  if (classes.t_fast_ns > classes.t_slow_ns) {
    return Error{.message = "scenario '" + scenario +
                            "': the fast threshold is above the slow one (" + borders + ")",
                 .hint = Suggestion(classes.durations)};
  }
  for (const uint32_t i : members) {
    const int64_t dur_ns = evidence.instances[i].dur_ns;
    if (dur_ns < classes.t_fast_ns) {
      classes.fast.push_back(i);
    } else if (dur_ns > classes.t_slow_ns) {
      classes.slow.push_back(i);
    } else {
      ++classes.between;
    }
  }
  if (classes.fast.empty() || classes.slow.empty()) {
    return Error{.message = "scenario '" + scenario + "' has no " +
                            (classes.fast.empty() ? "fast" : "slow") + " instances (" + borders +
                            ")",
                 .hint = Suggestion(classes.durations)};
  }
  return classes;
}

}  // namespace culprit::causality
