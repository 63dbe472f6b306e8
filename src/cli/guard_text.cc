// SPDX-License-Identifier: Apache-2.0
#include "cli/guard_text.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/plain_text.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using guard::Profile;
using guard::SeenStack;
using guard::UnitReport;
using guard::UnitType;
using report::Table;

constexpr auto kGuardRight = Table::Align::kRight;
constexpr size_t kShownFrames = 8;
constexpr size_t kShownStacks = 2;

std::string GuardDuration(uint64_t dur_ns) {
  return FormatDuration(static_cast<int64_t>(std::min<uint64_t>(dur_ns, INT64_MAX)));
}

std::string ClockText(int64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm local = {};
  localtime_r(&seconds, &local);
  char text[16] = {};
  strftime(text, sizeof(text), "%H:%M:%S", &local);
  return text;
}

std::string TimesText(uint64_t part, uint64_t whole) {
  if (whole == 0) return "";
  const uint64_t tenths = part / (whole / 10 + (whole < 10 ? 1 : 0));
  return " (" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " x)";
}

std::string StackText(const SeenStack& stack) {
  std::string text = "    ";
  switch (stack.by) {
    case SeenStack::By::kGuard:
      text += "at a guard";
      break;
    case SeenStack::By::kLook:
      text += "seen " + std::to_string(stack.seen) + (stack.seen == 1 ? " time, " : " times, ") +
              (stack.running ? "running" : "asleep");
      break;
    case SeenStack::By::kEnd:
      text += "at its end";
      break;
  }
  text += ":\n";
  size_t shown = 0;
  for (const guard::NamedFrame& frame : stack.frames) {
    if (shown++ == kShownFrames) {
      text += "      ... " + std::to_string(stack.frames.size() - kShownFrames) + " more\n";
      break;
    }
    text += "      " + report::PlainText(frame.ToString());
    if (!frame.file.empty()) {
      text += " (" + report::PlainText(std::string(BaseName(frame.file))) + ":" +
              std::to_string(frame.line) + ")";
    }
    text += "\n";
  }
  return text;
}

std::string SlowText(const UnitReport& report) {
  return report::PlainText(report.type_name) + " " + GuardDuration(report.counted_ns()) +
         ", threshold " + GuardDuration(report.threshold_ns) +
         TimesText(report.counted_ns(), report.threshold_ns);
}

std::string SpinText(const UnitReport& report) {
  const uint64_t units = std::max<uint64_t>(report.units, 1);
  return FormatCount(report.units) + " units in " + GuardDuration(report.wall_ns) + ", " +
         GuardDuration(report.cpu_ns / units) + " each, where the loop's work takes " +
         GuardDuration(report.usual_ns) + " and more";
}

std::string TrickleText(const UnitReport& report) {
  const uint64_t units = std::max<uint64_t>(report.units, 1);
  return "one output takes " + FormatCount(report.units) + " units and " +
         GuardDuration(report.counted_ns()) + ", " + GuardDuration(report.counted_ns() / units) +
         " each, where most of the loop's work takes " + GuardDuration(report.usual_ns) +
         " and more";
}

std::string WhatText(const UnitReport& report) {
  switch (report.state) {
    case UnitReport::State::kSpins:
      return SpinText(report);
    case UnitReport::State::kTrickles:
      return TrickleText(report);
    default:
      return SlowText(report);
  }
}

std::string PpmText(uint64_t ppm) { return FormatShare(static_cast<int64_t>(ppm), 1'000'000); }

std::string PerUnit(uint64_t hits_per_mega_unit) {
  const uint64_t hundredths = (hits_per_mega_unit + 5000) / 10'000;
  const std::string rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (rest.size() < 2 ? "0" : "") + rest;
}

}  // namespace

std::string GuardReportText(const UnitReport& report, bool color) {
  std::string head = ClockText(report.begin_unix_ns) + " " + report::PlainText(report.process) +
                     "[" + std::to_string(report.tid) + "] " + std::string(Name(report.state)) +
                     ": " + WhatText(report);
  std::string text = report::Heading(head, color);
  text += "    ";
  if (report.has_cpu) {
    text += "CPU " + GuardDuration(report.cpu_ns) + ", blocked " +
            GuardDuration(report.blocked_ns()) + ", ";
  }
  text += "ready " + GuardDuration(report.ready_ns) + "; " + std::string(guard::Name(report.kind));
  if (!report.loop.empty()) text += " of " + report::PlainText(report.loop);
  if (!report.nearest_type.empty()) {
    text += "; most like " + report::PlainText(report.nearest_type) + " (" +
            PpmText(report.similarity_ppm) + ")";
  }
  text += "\n";
  for (size_t i = 0; i < std::min(report.stacks.size(), kShownStacks); ++i) {
    if (i > 0 && report.stacks[i].by == SeenStack::By::kEnd) break;
    text += StackText(report.stacks[i]);
  }
  return text;
}

namespace {

std::string OwnCostText(const GuardSummary& summary) {
  const OwnCostShare& cost = summary.own_cost;
  if (!cost.why_not.empty()) return "not known: " + cost.why_not;
  if (cost.samples < kFewestCostSamples) {
    return "not known: only " + FormatCount(cost.samples) + " samples of the program";
  }
  const auto ppm = [](double share) {
    return PpmText(static_cast<uint64_t>(std::llround(share * 1e6)));
  };
  std::string text = ppm(cost.Share()) + " ± " + ppm(cost.Error()) +
                     " of the program's CPU time (" + FormatCount(cost.samples) + " samples)";
  if ((cost.Share() - cost.Error()) * 1e6 > static_cast<double>(summary.budget_ppm)) {
    text += "; above the budget: a smaller --budget has fewer guards";
  }
  return text;
}

}  // namespace

std::string GuardSummaryText(const GuardSummary& summary, const Output& output) {
  const guard::SessionTotals& totals = summary.totals;
  const auto count = [](uint64_t n) { return FormatCount(n); };
  const uint64_t per_mega = totals.units == 0
                                ? 0
                                : static_cast<uint64_t>(static_cast<double>(totals.hits) * 1e6 /
                                                        static_cast<double>(totals.units));
  std::vector<report::Fact> facts = {
      {"time", GuardDuration(summary.dur_ns)},
      {"processes", count(totals.processes)},
      {"units", count(totals.units)},
      {"slow units", count(summary.reports) +
                         (totals.suppressed > 0
                              ? ", and " + count(totals.suppressed) + " beyond the rate of reports"
                              : "")},
      {"guards",
       count(totals.patched) + " functions patched" +
           (totals.refused > 0 ? ", " + count(totals.refused) + " cannot be" : "") +
           (totals.removed > 0 ? ", " + count(totals.removed) + " took themselves away (too hot)"
                               : "")},
      {"hits per unit", PerUnit(per_mega)},
      {"expected cost", PpmText(summary.plan.cost_ppm) + " of a unit's time"},
      {"measured cost", OwnCostText(summary)},
      {"looks", PpmText(summary.looks_ppm) + " of the program's CPU time"}};
  if (totals.withdrawn > 0) {
    facts.emplace_back("withdrawn",
                       count(totals.withdrawn) +
                           " units kept their threshold in the end, or were slow only by looks at "
                           "them");
  }
  if (totals.lost_records > 0) facts.emplace_back("lost", count(totals.lost_records) + " records");
  if (totals.foreign_modules > 0) {
    facts.emplace_back("other builds",
                       count(totals.foreign_modules) + " modules are not those of the profile");
  }
  std::string text =
      report::Heading("guarded", output.color()) + report::Facts(facts, output.color());
  if (summary.by_type.empty()) return text;
  std::vector<std::pair<std::string, std::pair<uint64_t, uint64_t>>> rows(summary.by_type.begin(),
                                                                          summary.by_type.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  Table table;
  table.Column("slow units", kGuardRight)
      .Column("longest", kGuardRight)
      .Column("type", Table::Align::kLeft, true);
  for (const auto& [type, row] : rows) {
    table.Row({count(row.first), GuardDuration(row.second), report::PlainText(type)});
  }
  return text + "\n" + table.ToText(output.width(), output.color());
}

namespace {

std::string LoopsText(const Profile& profile, const Output& output) {
  Table table;
  table.Column("loop")
      .Column("events")
      .Column("iterations", kGuardRight)
      .Column("events each", kGuardRight)
      .Column("units are");
  for (uint32_t i = 0; i < profile.loops.size(); ++i) {
    const guard::ProfileLoop& loop = profile.loops[i];
    const uint64_t per_mega =
        loop.iterations == 0 ? 0 : loop.ready_events * 1'000'000 / loop.iterations;
    std::string units = "iterations";
    if (!loop.turns.empty()) {
      units += ", up to " + FunctionName(profile, loop.turns.front().function);
    }
    if (!loop.handlers.empty()) units = "handlers";
    if (!loop.commands.empty()) units = "commands in handlers";
    if (loop.hand_over) units = "none: it hands over connections";
    table.Row({report::PlainText(LoopName(profile, i)), loop.external ? "from outside" : "inner",
               FormatCount(loop.iterations), PerUnit(per_mega), report::PlainText(units)});
  }
  return report::Heading("event loops", output.color()) +
         table.ToText(output.width(), output.color());
}

std::string TypesText(const Profile& profile, const ProfileView& view, const Output& output) {
  Table table;
  table.Column("#", kGuardRight)
      .Column("unit")
      .Column("trained", kGuardRight)
      .Column("samples", kGuardRight)
      .Column("median", kGuardRight)
      .Column("p99", kGuardRight)
      .Column("max", kGuardRight)
      .Column("deviation", kGuardRight)
      .Column("threshold", kGuardRight)
      .Column("type", Table::Align::kLeft, true);
  const size_t shown = std::min(profile.types.size(), view.top);
  for (size_t i = 0; i < shown; ++i) {
    const UnitType& type = profile.types[i];
    const bool measured = type.stats.count() > 0;
    const auto cell = [&](uint64_t ns) { return measured ? GuardDuration(ns) : "-"; };
    table.Row({std::to_string(i), std::string(guard::Name(type.kind)), FormatCount(type.units),
               FormatCount(type.stats.count()), cell(type.stats.QuantileNs(500'000)),
               cell(type.stats.QuantileNs(990'000)), cell(type.stats.max_ns()),
               measured ? FormatShare(static_cast<int64_t>(type.stats.sigma_ns()),
                                      static_cast<int64_t>(type.stats.mean_ns()))
                        : "-",
               type.threshold_ns == 0 ? "-" : GuardDuration(type.threshold_ns),
               report::PlainText(type.name)});
  }
  std::string text =
      report::Heading("unit types", output.color()) + table.ToText(output.width(), output.color());
  if (shown < profile.types.size()) {
    text += report::Note("and " + std::to_string(profile.types.size() - shown) + " more (--top)",
                         output.color());
  }
  return text;
}

std::string GuardsText(const Profile& profile, const guard::PlanFacts& plan,
                       const ProfileView& view, const Output& output) {
  Table table;
  table.Column("#", kGuardRight)
      .Column("hits per unit", kGuardRight)
      .Column("bits gained", kGuardRight)
      .Column("contexts", kGuardRight)
      .Column("function", Table::Align::kLeft, true);
  const std::vector<uint32_t>& taken = plan.guards.numbers;
  const size_t shown = std::min(taken.size(), view.top);
  for (size_t i = 0; i < shown; ++i) {
    const guard::Guard& one = profile.guards[taken[i]];
    table.Row({std::to_string(taken[i]), PerUnit(one.hits_per_mega_unit),
               PerUnit(one.gain_microbits), FormatCount(one.contexts.size()),
               report::PlainText(FunctionName(profile, one.function))});
  }
  std::string text = report::Heading("guards within the budget", output.color()) +
                     table.ToText(output.width(), output.color());
  if (shown < taken.size()) {
    text += report::Note("and " + std::to_string(taken.size() - shown) + " more (--top)",
                         output.color());
  }
  return text;
}

guard::PlanFacts FactsOfPlan(const Profile& profile, const ProfileView& view) {
  guard::PlanFacts facts;
  guard::BuildPlan(profile, guard::wire::Mode::kGuard, {.budget_ppm = view.budget_ppm}, &facts);
  return facts;
}

uint64_t CalibratedSamples(const Profile& profile) {
  uint64_t samples = profile.unknown.count();
  for (const UnitType& type : profile.types) samples += type.stats.count();
  return samples;
}

}  // namespace

std::string GuardProfileText(const Profile& profile, const std::string& path,
                             const ProfileView& view, const Output& output) {
  const guard::PlanFacts plan = FactsOfPlan(profile, view);
  const auto share = [](uint64_t part, uint64_t whole) {
    return FormatShare(static_cast<int64_t>(part), static_cast<int64_t>(whole));
  };
  const guard::InferenceQuality& quality = profile.quality;
  const std::vector<report::Fact> facts = {
      {"program", report::PlainText(profile.program)},
      {"modules", FormatCount(profile.modules.size())},
      {"training", FormatCount(profile.training.runs) + " runs, " +
                       FormatCount(profile.training.entries) + " function entries, " +
                       FormatCount(profile.training.units) + " units"},
      {"samples", FormatCount(CalibratedSamples(profile))},
      {"types told right", share(quality.right, quality.units) + " of the training's units, " +
                               share(quality.held_out_right, quality.held_out_units) +
                               " of a held-out half; within the budget " +
                               share(plan.guards.right, plan.guards.units)},
      {"guards", FormatCount(plan.guards.numbers.size()) + " of " +
                     FormatCount(profile.guards.size()) + ", " + FormatCount(plan.functions) +
                     " functions patched"},
      {"hits per unit", PerUnit(plan.guards.hits_per_mega_unit) + ", expected cost " +
                            PpmText(plan.cost_ppm) + " of " + GuardDuration(plan.unit_ns) +
                            (plan.unit_ns_measured ? "" : " (estimated)") + ", " +
                            PpmText(plan.unit_cost_ppm) + " without those that tell types"},
      {"unlike any type", "threshold " + GuardDuration(profile.unknown_threshold_ns)}};
  return report::Heading(report::PlainText(path) + ": guard profile", output.color()) +
         report::Facts(facts, output.color()) + "\n" + LoopsText(profile, output) + "\n" +
         TypesText(profile, view, output) + "\n" + GuardsText(profile, plan, view, output);
}

}  // namespace culprit::cli
