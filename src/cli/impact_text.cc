// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cli/causality_text.h"
#include "cli/impact_report.h"
#include "report/plain_text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using causality::ImpactResult;
using causality::ImpactRow;
using causality::Interval;
using causality::PropagatedWait;
using report::Table;

constexpr size_t kMaxPropagatedShown = 5;

std::string IntervalText(const std::optional<Interval>& interval) {
  if (!interval) return {};
  return fmt::format(" ({:.1f}–{:.1f} %)", interval->low * 100, interval->high * 100);
}

std::string WholeBlock(const ImpactResult& result, const CausalityTextOptions& options) {
  const ImpactRow& row = result.whole;
  const int64_t again_ns = row.d_wait_ns - row.d_waitdist_ns;
  std::vector<report::Fact> facts;
  facts.emplace_back("waits", FormatShare(row.d_wait_ns, row.d_scn_ns) +
                                  IntervalText(row.ia_wait_interval) +
                                  " of the time: " + FormatDuration(row.d_wait_ns) + " in " +
                                  Counted(row.waits, "wait", "waits"));
  facts.emplace_back("runs", FormatShare(row.d_run_ns, row.d_scn_ns) +
                                 IntervalText(row.ia_run_interval) +
                                 " of the time: " + FormatDuration(row.d_run_ns));
  facts.emplace_back("again", FormatShare(again_ns, row.d_scn_ns) +
                                  IntervalText(row.ia_opt_interval) +
                                  " of the time is waiting that delayed more than one instance: " +
                                  FormatDuration(row.d_waitdist_ns) + " of distinct waits count " +
                                  FactorText(row.propagation));
  facts.emplace_back("instances", FormatCount(row.affected_instances) + " of " +
                                      FormatCount(row.instances) + " touched");
  return "\n" + report::Heading("All of " + report::PlainText(row.component), options.color) +
         report::Facts(facts, options.color);
}

void ImpactColumns(Table& table, std::string_view first) {
  table.Column(first, Table::Align::kLeft, true);
  for (const char* header :
       {"time", "waits", "IA_wait", "runs", "IA_run", "IA_opt", "again", "instances"}) {
    table.Column(header, Table::Align::kRight);
  }
}

void ImpactCells(Table& table, const std::string& name, const ImpactRow& row) {
  table.Row({name, FormatDuration(row.d_scn_ns), FormatDuration(row.d_wait_ns),
             FormatShare(row.d_wait_ns, row.d_scn_ns), FormatDuration(row.d_run_ns),
             FormatShare(row.d_run_ns, row.d_scn_ns),
             FormatShare(row.d_wait_ns - row.d_waitdist_ns, row.d_scn_ns),
             FactorText(row.propagation),
             FormatCount(row.affected_instances) + " of " + FormatCount(row.instances)});
}

std::string PartsTable(const CausalityInput& input, const ImpactResult& result,
                       const CausalityTextOptions& options) {
  const std::string by(Name(input.options.extract.component.by));
  if (result.components.size() < 2) return {};
  Table table;
  ImpactColumns(table, by);
  const size_t shown = std::min(options.show, result.components.size());
  for (size_t i = 0; i < shown; ++i) {
    ImpactCells(table, result.components[i].component, result.components[i]);
  }
  ImpactCells(table, "all together", result.whole);
  std::string text = "\n" + report::Heading("By " + by, options.color) +
                     table.ToText(options.width, options.color);
  if (result.components.size() > shown) {
    text += report::Note(
        "… " + FormatCount(result.components.size() - shown) + " more with less; --top shows them",
        options.color);
  }
  if (input.options.extract.component.by == causality::By::kModule) {
    text += report::Note(
        "A wait with frames of two modules counts for both: rows do not add up to the last.",
        options.color);
  }
  return text;
}

// What is not shown, so that times add up, scenarios without the component among
// it. Distinct waits of two scenarios may be the same, so they cannot be taken off.
void RestRow(Table& table, const ImpactResult& result, size_t shown) {
  ImpactRow rest = result.whole;
  for (size_t i = 0; i < shown; ++i) {
    const ImpactRow& row = result.scenarios[i];
    rest.d_scn_ns -= row.d_scn_ns;
    rest.d_wait_ns -= row.d_wait_ns;
    rest.d_run_ns -= row.d_run_ns;
    rest.instances -= row.instances;
    rest.affected_instances -= row.affected_instances;
  }
  if (rest.instances == 0) return;
  table.Row({"… all others", FormatDuration(rest.d_scn_ns), FormatDuration(rest.d_wait_ns),
             FormatShare(rest.d_wait_ns, rest.d_scn_ns), FormatDuration(rest.d_run_ns),
             FormatShare(rest.d_run_ns, rest.d_scn_ns), "", "",
             FormatCount(rest.affected_instances) + " of " + FormatCount(rest.instances)});
}

std::string ScenarioTable(const ImpactResult& result, const CausalityTextOptions& options) {
  if (result.scenarios.size() < 2) return {};
  Table table;
  ImpactColumns(table, "scenario");
  const size_t shown = std::min(options.show, result.scenarios.size());
  for (size_t i = 0; i < shown; ++i) {
    ImpactCells(table, result.scenarios[i].scenario, result.scenarios[i]);
  }
  RestRow(table, result, shown);
  ImpactCells(table, "all together", result.whole);
  return "\n" + report::Heading("By scenario", options.color) +
         table.ToText(options.width, options.color);
}

std::string PropagatedBlock(const CausalityInput& input, const ImpactResult& result,
                            const CausalityTextOptions& options) {
  if (result.propagated.empty()) return {};
  std::string text = "\n" + report::Heading("Waits that delayed several instances", options.color);
  for (size_t i = 0; i < std::min(kMaxPropagatedShown, result.propagated.size()); ++i) {
    const PropagatedWait& wait = result.propagated[i];
    std::string line = "  " + FormatDuration(wait.dur_ns) + ", charged " +
                       FormatDuration(wait.charged_ns) + " to " +
                       Counted(wait.instances, "instance", "instances") + ": " + wait.thread +
                       " in " + wait.signature;
    if (!wait.waker.empty()) line += ", ended by " + wait.waker;
    if (!wait.unwait_signature.empty()) line += " in " + wait.unwait_signature;
    text += report::PlainText(line) + "\n";
    if (!wait.instance_indexes.empty()) {
      text += report::Note(
          "     " + report::PlainText(input.ShowLine(wait.trace, wait.instance_indexes.front())) +
              " --lanes",
          options.color);
    }
  }
  return text;
}

std::string Meaning(const ImpactResult& result, const CausalityTextOptions& options) {
  std::string text = "\n";
  for (const char* line :
       {"waits    time in which a thread that delays the instance is blocked inside the component; "
        "what lies behind such a wait is not counted again",
        "runs     CPU time with a frame of the component on the stack, behind waits too",
        "IA_…     the share of the instances' time; IA_opt is the part of the waits that is the "
        "same wait once more, in another instance",
        "again    waits over distinct waits: to how many instances the average wait was charged"}) {
    text += report::Note(line, options.color);
  }
  if (result.whole.ia_wait_interval) {
    text +=
        report::Note(fmt::format("(…)      {:.0f} % intervals over traces: {} resamples, seed {}",
                                 result.confidence * 100, result.resamples, result.seed),
                     options.color);
  }
  return text;
}

}  // namespace

std::string ImpactText(const CausalityInput& input, const ImpactResult& result,
                       const CausalityTextOptions& options) {
  return CausalityHead(input, options) + CausalitySkipped(input, options) +
         WholeBlock(result, options) + PartsTable(input, result, options) +
         ScenarioTable(result, options) + PropagatedBlock(input, result, options) +
         Meaning(result, options);
}

}  // namespace culprit::cli
