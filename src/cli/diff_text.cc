// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cli/causality_text.h"
#include "cli/diff_report.h"
#include "report/plain_text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using causality::ChainChange;
using causality::ScenarioDiff;
using report::Table;

std::string SignedDuration(int64_t dur_ns) {
  if (dur_ns < 0) return "-" + FormatDuration(-dur_ns);
  return (dur_ns > 0 ? "+" : "") + FormatDuration(dur_ns);
}

std::string SignedShare(int64_t part_ns, int64_t whole_ns) {
  if (whole_ns == 0) return "-";
  return fmt::format("{:+.1f} %",
                     100 * static_cast<double>(part_ns) / static_cast<double>(whole_ns));
}

// A change and the scenario it is of.
struct Moved {
  const ScenarioDiff* scenario = nullptr;
  const ChainChange* change = nullptr;
};

// Significant ones first, then by what they cost over all instances after.
std::vector<Moved> AllChanges(const DiffFacts& facts) {
  std::vector<Moved> all;
  for (const ScenarioDiff& scenario : facts.result.scenarios) {
    for (const ChainChange& change : scenario.changes) all.push_back({&scenario, &change});
  }
  std::stable_sort(all.begin(), all.end(), [](const Moved& a, const Moved& b) {
    if (a.change->significant != b.change->significant) return a.change->significant;
    return std::abs(a.change->delta_ns) > std::abs(b.change->delta_ns);
  });
  return all;
}

std::string Sides(const DiffFacts& facts, const CausalityTextOptions& options) {
  std::string text;
  for (const auto& [name, input] :
       {std::pair<const char*, const CausalityInput*>("before", &facts.before),
        std::pair<const char*, const CausalityInput*>("after", &facts.after)}) {
    text += std::string(name) + "  " + CausalityHead(*input, options) +
            CausalitySkipped(*input, options);
  }
  return text;
}

std::string ScenarioTable(const DiffFacts& facts, const CausalityTextOptions& options) {
  std::vector<const ScenarioDiff*> rows;
  for (const ScenarioDiff& scenario : facts.result.scenarios) rows.push_back(&scenario);
  const auto moved_ns = [](const ScenarioDiff* row) {
    return std::abs(row->mean_after_ns - row->mean_before_ns);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const ScenarioDiff* a, const ScenarioDiff* b) {
    return moved_ns(a) > moved_ns(b);
  });
  Table table;
  table.Column("scenario", Table::Align::kLeft, true);
  for (const char* header : {"instances", "mean before", "after", "change", "", "p"}) {
    table.Column(header, Table::Align::kRight);
  }
  const size_t shown = std::min(rows.size(), options.show * 2);
  for (size_t i = 0; i < shown; ++i) {
    const ScenarioDiff& row = *rows[i];
    const int64_t delta_ns = row.mean_after_ns - row.mean_before_ns;
    table.Row({row.scenario, FormatCount(row.before.count) + " → " + FormatCount(row.after.count),
               FormatDuration(row.mean_before_ns), FormatDuration(row.mean_after_ns),
               SignedDuration(delta_ns), SignedShare(delta_ns, row.mean_before_ns),
               ProbabilityText(row.p_value)});
  }
  std::string text = "\n" + report::Heading("Durations", options.color) +
                     table.ToText(options.width, options.color);
  if (rows.size() > shown) {
    text += report::Note("… " + FormatCount(rows.size() - shown) + " more that moved less",
                         options.color);
  }
  return text;
}

std::string ChangeBlock(const DiffFacts& facts, const Moved& moved, size_t number,
                        const CausalityTextOptions& options) {
  const ChainChange& change = *moved.change;
  std::string title = "#" + std::to_string(number) + "  " + std::string(Name(change.change)) +
                      ", " + SignedDuration(change.delta_ns) + " an instance of " +
                      report::PlainText(change.scenario) + " (" +
                      SignedShare(change.delta_ns, moved.scenario->mean_before_ns) + ")";
  if (!change.significant) title += ", may be chance";
  std::string text = "\n" + report::Styled(report::Style::kBold, title, options.color) + "\n";
  text += TupleLines(change.tuple, options);
  text += "     " + FormatDuration(change.before.per_instance_ns) + " → " +
          FormatDuration(change.after.per_instance_ns) + " an instance; in " +
          FormatCount(change.before.instances) + " of " +
          FormatCount(moved.scenario->before.count) + " before, " +
          FormatCount(change.after.instances) + " of " + FormatCount(moved.scenario->after.count) +
          " after; p = " + ProbabilityText(change.p_value) + "\n";
  const CausalityInput& side = change.delta_ns > 0 ? facts.after : facts.before;
  return text + ExampleLines(side, change.examples, options);
}

std::string Changes(const DiffFacts& facts, const CausalityTextOptions& options) {
  const std::vector<Moved> all = AllChanges(facts);
  const auto significant = static_cast<uint64_t>(std::count_if(
      all.begin(), all.end(), [](const Moved& moved) { return moved.change->significant; }));
  uint64_t same = 0;
  uint64_t exceptions = 0;
  for (const ScenarioDiff& scenario : facts.result.scenarios) {
    same += scenario.same;
    exceptions += scenario.exceptions;
  }
  std::string title = "Chains: " + FormatCount(significant) + " moved, " +
                      FormatCount(all.size() - significant) + " may have by chance, " +
                      FormatCount(same) + " did not";
  if (exceptions > 0) title += ", " + FormatCount(exceptions) + " left out by the exceptions";
  std::string text = "\n" + report::Heading(title, options.color);
  // What may be chance is shown only if nothing else is.
  const size_t worth = significant > 0 ? significant : all.size();
  for (size_t i = 0; i < std::min(options.show, worth); ++i) {
    text += ChangeBlock(facts, all[i], i + 1, options);
  }
  if (worth > options.show) {
    text += report::Note("… " + FormatCount(worth - options.show) + " more; --show, --json",
                         options.color);
  }
  return text;
}

std::string OnlyText(std::string_view side, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  constexpr size_t kShown = 8;
  std::string text = "only " + std::string(side) + ":";
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += (i == 0 ? " " : ", ") + report::PlainText(names[i]);
  }
  if (names.size() > kShown) text += " and " + FormatCount(names.size() - kShown) + " more";
  return text + "\n";
}

std::string Verdict(const DiffFacts& facts, const CausalityTextOptions& options) {
  if (!facts.bound) return {};
  const std::string bound = fmt::format("{:.3g} %", *facts.bound * 100);
  if (facts.violations.empty()) return "\nNothing lost more than " + bound + "\n";
  std::string text =
      "\n" + report::Heading("Lost more than " + bound + " of the mean duration before: " +
                                 FormatCount(facts.violations.size()),
                             options.color);
  for (const DiffViolation& violation : facts.violations) {
    text += "  " + report::PlainText(violation.scenario) + " " + violation.what + " by " +
            FormatDuration(violation.delta_ns) + " an instance, " +
            SignedShare(violation.delta_ns, violation.before_ns);
    if (!violation.chain.empty()) text += ": " + violation.chain;
    text += "\n";
    if (!violation.example.empty()) {
      text += report::Note("     " + report::PlainText(violation.example), options.color);
    }
  }
  return text;
}

std::string Meaning(const DiffFacts& facts, const CausalityTextOptions& options) {
  return "\n" +
         report::Note(
             "Times are per instance of the scenario, over all of them; a chain is what "
             "waited, what ended the waits and what ran meanwhile.",
             options.color) +
         report::Note("p: " + std::string(causality::CorrectionText()) +
                          fmt::format("; moved: p at most {:.2g}", facts.significant),
                      options.color);
}

}  // namespace

std::string DiffText(const DiffFacts& facts, const CausalityTextOptions& options) {
  return Sides(facts, options) + ScenarioTable(facts, options) +
         OnlyText("before", facts.result.only_before) + OnlyText("after", facts.result.only_after) +
         Changes(facts, options) + Meaning(facts, options) + Verdict(facts, options);
}

}  // namespace culprit::cli
