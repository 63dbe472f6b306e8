// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/shell_word.h"
#include "base/text.h"
#include "cli/causality_text.h"
#include "cli/contrast_report.h"
#include "report/plain_text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using causality::ContrastPattern;
using causality::ContrastResult;
using causality::DurationFacts;
using report::Table;

constexpr size_t kLeftOutShown = 5;

std::string ShareText(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string DurationsText(const DurationFacts& facts) {
  return "p10 " + FormatDuration(facts.p10_ns) + ", p50 " + FormatDuration(facts.p50_ns) +
         ", p75 " + FormatDuration(facts.p75_ns) + ", p90 " + FormatDuration(facts.p90_ns) +
         ", p99 " + FormatDuration(facts.p99_ns) + ", at most " + FormatDuration(facts.max_ns);
}

std::string PatternsText(const ContrastResult& result) {
  std::string text = FormatCount(result.patterns.size()) + " of " +
                     Counted(result.slow_paths, "path", "paths") +
                     " of the slow: " + ShareText(result.ttc) + " of the component's time (TTC), " +
                     ShareText(result.itc) + " in those that alone pass the slow bound (ITC)";
  return text;
}

std::string ContrastHead(const ContrastResult& result, const CausalityTextOptions& options) {
  const causality::Classes& classes = result.classes;
  const std::string title = report::PlainText(result.scenario) + ": " +
                            Counted(classes.durations.count, "instance", "instances") + ", " +
                            FormatCount(classes.fast.size()) + " fast (below " +
                            FormatDuration(classes.t_fast_ns) + "), " +
                            FormatCount(classes.slow.size()) + " slow (above " +
                            FormatDuration(classes.t_slow_ns) + ")";
  std::vector<report::Fact> facts;
  facts.emplace_back("durations", DurationsText(classes.durations));
  if (classes.chosen) facts.emplace_back("bounds", classes.why + "; --fast and --slow set them");
  facts.emplace_back("component",
                     ShareText(result.component_share) +
                         " of the slow instances' time: " + FormatDuration(result.component_ns));
  facts.emplace_back("patterns", PatternsText(result));
  if (result.pruned_ns > 0) {
    facts.emplace_back("pruned", FormatShare(result.pruned_ns, result.component_ns) +
                                     " of it is waits for a device that nobody else waited "
                                     "behind: " +
                                     FormatDuration(result.pruned_ns));
  }
  if (result.exception_patterns > 0) {
    facts.emplace_back("by design",
                       Counted(result.exception_patterns, "pattern", "patterns") +
                           " left out by the exceptions: " + FormatDuration(result.exception_ns));
  }
  for (const std::string& glob : result.unused_exceptions) {
    facts.emplace_back("exception", report::PlainText(glob) + " matches no pattern");
  }
  return "\n" + report::Heading(title, options.color) + report::Facts(facts, options.color);
}

std::string SlowerText(const ContrastPattern& pattern) {
  if (pattern.slow_only) return "only slow";
  return pattern.ratio ? FactorText(*pattern.ratio) : "-";
}

// The first `most` by rank, and the costliest, which an order by average can put far behind:
// without it the rows might say nothing about where the time of slow instances went.
std::vector<size_t> Shown(const ContrastResult& result, size_t most) {
  std::vector<size_t> shown(std::min(result.patterns.size(), most));
  std::iota(shown.begin(), shown.end(), size_t{0});
  const auto costliest = std::max_element(
      result.patterns.begin(), result.patterns.end(),
      [](const ContrastPattern& a, const ContrastPattern& b) { return a.cost_ns < b.cost_ns; });
  const auto at = static_cast<size_t>(costliest - result.patterns.begin());
  if (at >= shown.size() && at < result.patterns.size()) shown.push_back(at);
  return shown;
}

std::string Ranking(const ContrastResult& result, const CausalityTextOptions& options) {
  Table table;
  table.Column("#", Table::Align::kRight);
  for (const char* header : {"average", "cost", "share", "instances", "slower", "p"}) {
    table.Column(header, Table::Align::kRight);
  }
  table.Column("pattern", Table::Align::kLeft, true);
  const std::vector<size_t> shown = Shown(result, options.show * 2);
  int64_t shown_ns = 0;
  for (const size_t i : shown) {
    const ContrastPattern& pattern = result.patterns[i];
    shown_ns += pattern.cost_ns;
    table.Row({std::to_string(i + 1), FormatDuration(pattern.average_ns()),
               FormatDuration(pattern.cost_ns), FormatShare(pattern.cost_ns, result.component_ns),
               FormatCount(pattern.instances), SlowerText(pattern),
               ProbabilityText(pattern.p_value), TupleLine(pattern.tuple)});
  }
  std::string text = "\n" + table.ToText(options.width, options.color);
  text += report::Note(
      "in the rows above " + FormatDuration(shown_ns) + ", in " +
          Counted(result.patterns.size() - shown.size(), "other pattern", "other patterns") + " " +
          FormatDuration(result.patterns_ns - shown_ns) + ", together " +
          FormatDuration(result.patterns_ns),
      options.color);
  return text;
}

std::string WhyText(const ContrastPattern& pattern) {
  const causality::ClassCosts& costs = pattern.why.costs;
  const std::string what = TupleLine(pattern.why.tuple);
  if (what.empty()) return {};
  if (costs.slow_only()) return "no fast instance has " + what;
  const auto ratio = costs.Ratio();
  return (ratio ? FactorText(*ratio) + " as long as in fast instances: " : "") + what;
}

std::string PatternBlock(const CausalityInput& input, const ContrastResult& result, size_t at,
                         const CausalityTextOptions& options) {
  const ContrastPattern& pattern = result.patterns[at];
  std::string title = "#" + std::to_string(at + 1) + "  " + FormatDuration(pattern.average_ns()) +
                      " on average, " + FormatDuration(pattern.cost_ns) + " in all";
  if (pattern.high_impact) title += ", alone more than the slow bound";
  std::string text = "\n" + report::Styled(report::Style::kBold, title, options.color) + "\n";
  text += TupleLines(pattern.tuple, options);
  text += "     in " + FormatCount(pattern.instances) + " of " +
          Counted(result.classes.slow.size(), "slow instance", "slow instances") + " and " +
          Counted(pattern.traces, "trace", "traces") + ", " +
          Counted(pattern.count, "time", "times") + "; in " + FormatCount(pattern.fast_instances) +
          " of " + Counted(result.classes.fast.size(), "fast one", "fast ones");
  if (pattern.ratio) text += ", there " + FactorText(1 / *pattern.ratio) + " as long";
  text += "; p = " + ProbabilityText(pattern.p_value) + "\n";
  if (const std::string why = WhyText(pattern); !why.empty()) text += "     " + why + "\n";
  return text + ExampleLines(input, pattern.examples, options);
}

std::string Meaning(const ContrastResult& result, const CausalityTextOptions& options) {
  const std::string order = result.rank == causality::RankBy::kAverage
                                ? "average (the order here)"
                                : "ordered by " + std::string(Name(result.rank)) + "; average";
  const std::vector<std::string> lines = {
      "A pattern is a chain of waits: what waits in the first functions is ended by the second and "
      "depends meanwhile on what the third do; cost and count are of the chain's end.",
      order +
          ": cost over count; share: of the component's time in slow instances; slower: against "
          "the same pattern in fast instances",
      "p: " + result.correction};
  std::string text = "\n";
  for (const std::string& line : lines) text += report::Note(line, options.color);
  return text;
}

std::string ContrastBlock(const CausalityInput& input, const ContrastResult& result,
                          const CausalityTextOptions& options) {
  std::string text = ContrastHead(result, options);
  if (result.patterns.empty()) {
    return text + "\nNo chain of the component tells slow instances from fast ones.\n";
  }
  text += Ranking(result, options);
  for (const size_t i : Shown(result, options.show)) {
    text += PatternBlock(input, result, i, options);
  }
  return text;
}

// Table 1 of 003 beside its table 2.
std::string ClassesTable(const ContrastFacts& facts, const CausalityTextOptions& options) {
  Table table;
  table.Column("scenario", Table::Align::kLeft, true);
  for (const char* header :
       {"instances", "fast", "below", "slow", "above", "component", "ITC", "TTC"}) {
    table.Column(header, Table::Align::kRight);
  }
  for (const ContrastResult& result : facts.results) {
    table.Row({result.scenario, FormatCount(result.classes.durations.count),
               FormatCount(result.classes.fast.size()), FormatDuration(result.classes.t_fast_ns),
               FormatCount(result.classes.slow.size()), FormatDuration(result.classes.t_slow_ns),
               ShareText(result.component_share), ShareText(result.itc), ShareText(result.ttc)});
  }
  return "\n" + table.ToText(options.width, options.color) +
         report::Note(
             "fast are instances below the first bound, slow those above the second; "
             "component: its share of the slow instances' time",
             options.color) +
         report::Note(
             "ITC, TTC: of that, what patterns explain that alone pass the slow bound, and "
             "all patterns",
             options.color);
}

// Table 3.
std::string CoverageTable(const ContrastFacts& facts, const CausalityTextOptions& options) {
  Table table;
  table.Column("scenario", Table::Align::kLeft, true).Column("patterns", Table::Align::kRight);
  for (const char* header : {"first 10 %", "20 %", "30 %"}) {
    table.Column(header, Table::Align::kRight);
  }
  for (const ContrastResult& result : facts.results) {
    if (result.patterns.empty()) continue;
    std::vector<std::string> row = {result.scenario, FormatCount(result.patterns.size())};
    for (const causality::RankCoverage& coverage : result.coverage) {
      row.push_back(ShareText(coverage.share));
    }
    row.resize(5);
    table.Row(std::move(row));
  }
  if (table.rows() == 0) return {};
  return "\n" + table.ToText(options.width, options.color) +
         report::Note(
             "of all patterns' cost, what the first tenth, two and three tenths of them have",
             options.color);
}

std::string LeftOutText(const ContrastFacts& facts, const CausalityTextOptions& options) {
  if (facts.left_out.empty()) return {};
  std::string text = "\n" + report::Heading("Not contrasted: " + Counted(facts.left_out.size(),
                                                                         "scenario", "scenarios"),
                                            options.color);
  for (size_t i = 0; i < std::min(kLeftOutShown, facts.left_out.size()); ++i) {
    text += "  " + report::PlainText(facts.left_out[i].second) + "\n";
  }
  if (facts.left_out.size() > kLeftOutShown) {
    text += "  … " + FormatCount(facts.left_out.size() - kLeftOutShown) + " more\n";
  }
  return text;
}

}  // namespace

std::string ContrastText(const CausalityInput& input, const ContrastFacts& facts,
                         const CausalityTextOptions& options) {
  std::string text = CausalityHead(input, options) + CausalitySkipped(input, options);
  if (facts.results.size() == 1) {
    text += LeftOutText(facts, options) + ContrastBlock(input, facts.results.front(), options);
    return text + Meaning(facts.results.front(), options);
  }
  text +=
      ClassesTable(facts, options) + CoverageTable(facts, options) + LeftOutText(facts, options);
  CausalityTextOptions one = options;
  one.show = std::min<size_t>(1, options.show);
  for (size_t i = 0; i < std::min(options.show, facts.results.size()); ++i) {
    // What explains nothing has its row above and no more.
    if (!facts.results[i].patterns.empty()) text += ContrastBlock(input, facts.results[i], one);
  }
  return text + Meaning(facts.results.front(), options);
}

}  // namespace culprit::cli
