// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "cli/info_facts.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using report::Fact;
using report::Table;
using trace::Breakdown;
using trace::EventKind;
using trace::StackCost;

constexpr size_t kMaxScenarios = 12;

std::string Number(uint64_t value) { return FormatCount(value); }

std::string Plural(uint64_t count, std::string_view one, std::string_view many) {
  return Number(count) + " " + std::string(count == 1 ? one : many);
}

// "Linux", or "3 different: a, b, c", shortened.
std::string Values(const std::vector<std::string>& values) {
  std::string text = values.front();
  for (size_t i = 1; i < values.size() && i < 4; ++i) text += ", " + values[i];
  if (values.size() > 4) text += ", … (" + std::to_string(values.size()) + " different)";
  return text;
}

std::string Head(const InfoFacts& facts, bool color) {
  std::string text = report::Heading(
      facts.path +
          (facts.is_corpus ? ": corpus of " + Plural(facts.traces, "trace", "traces") : ": trace"),
      color);
  std::vector<Fact> rows;
  std::string recorded = FormatDuration(facts.dur_ns);
  if (facts.max_cpus > 0) {
    recorded += " on " +
                (facts.min_cpus == facts.max_cpus ? "" : std::to_string(facts.min_cpus) + " to ") +
                Plural(facts.max_cpus, "CPU", "CPUs");
  }
  rows.emplace_back("recorded", recorded);
  std::string events = Plural(facts.events, "event", "events") + ", " +
                       Plural(facts.threads, "thread", "threads") + ", " + FormatBytes(facts.bytes);
  if (facts.events > 0) {
    const uint64_t hundredths = facts.bytes * 100 / facts.events;
    events += " (" + std::to_string(hundredths / 100) + "." +
              std::to_string(hundredths % 100 / 10) + std::to_string(hundredths % 10) +
              " bytes an event)";
  }
  rows.emplace_back("events", events);
  for (const char* key : {"app", "app_version", "os", "kernel", "arch", "machine", "source"}) {
    const auto it = facts.origins.find(key);
    if (it != facts.origins.end()) rows.emplace_back(key, Values(it->second));
  }
  for (const auto& [key, value] : facts.properties) rows.emplace_back(key, value);
  return text + report::Facts(rows, color);
}

std::string Skipped(const InfoFacts& facts, bool color) {
  std::string text;
  for (const auto& [what, row] : facts.breakdown.diagnostics.rows()) {
    text += "  " + Number(row.count) + " x " + what;
    if (row.first_offset && !facts.is_corpus) {
      text += " (first at byte " + std::to_string(*row.first_offset) + ")";
    }
    text += "\n";
  }
  for (const std::string& error : facts.unreadable) text += "  not read: " + error + "\n";
  if (text.empty()) return text;
  return report::Heading("Damaged or skipped", color) + text;
}

std::string Inside(const InfoFacts& facts, size_t width, bool color) {
  Table table;
  table.Column("kind").Column("events", Table::Align::kRight);
  table.Column("time", Table::Align::kRight).Column("with stack", Table::Align::kRight);
  for (size_t i = 0; i < trace::kEventKinds; ++i) {
    const trace::KindTotals& kind = facts.breakdown.contents.kinds[i];
    if (kind.events == 0) continue;
    table.Row(
        {std::string(trace::kEventKindNames[i]), Number(kind.events),
         kind.dur_ns == 0 ? "-" : FormatDuration(kind.dur_ns),
         FormatShare(static_cast<int64_t>(kind.with_stack), static_cast<int64_t>(kind.events))});
  }
  std::string text = report::Heading("What is inside", color) + table.ToText(width, color);
  text += "\n" + report::Heading("What can be analysed", color);
  std::vector<Fact> rows;
  for (const trace::Capability& c : trace::Capabilities(facts.breakdown.contents)) {
    rows.emplace_back(std::string(c.analysis), (c.possible ? "yes: " : "no: ") + c.reason);
  }
  return text + report::Facts(rows, color);
}

std::string ScenarioTable(const InfoFacts& facts, size_t width, bool color) {
  if (facts.scenarios.empty()) return {};
  std::vector<corpus::ScenarioRow> rows = facts.scenarios;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  Table table;
  table.Column("scenario", Table::Align::kLeft, true).Column("instances", Table::Align::kRight);
  for (const char* header : {"total", "p50", "p90", "max"}) {
    table.Column(header, Table::Align::kRight);
  }
  for (size_t i = 0; i < rows.size() && i < kMaxScenarios; ++i) {
    table.Row({rows[i].name, Number(rows[i].instances), FormatDuration(rows[i].total_ns),
               FormatDuration(rows[i].p50_ns), FormatDuration(rows[i].p90_ns),
               FormatDuration(rows[i].max_ns)});
  }
  std::string text = report::Heading("Scenarios", color) + table.ToText(width, color);
  if (rows.size() > kMaxScenarios) {
    text += report::Note("… and " + std::to_string(rows.size() - kMaxScenarios) + " more", color);
  }
  return text + "\n";
}

std::string WhereTimeWent(const InfoFacts& facts, size_t width, bool color) {
  const Breakdown& b = facts.breakdown;
  const std::string what =
      facts.threads_as_instances
          ? Plural(b.instances, "thread", "threads") + " (there are no instances)"
          : Plural(b.instances, "instance", "instances");
  Table table;
  table.Column("").Column("time", Table::Align::kRight);
  table.Column("share", Table::Align::kRight).Column("");
  const auto row = [&](const char* name, int64_t ns) {
    table.Row({name, FormatDuration(ns), FormatShare(ns, b.total_ns),
               report::ShareBar(ns, b.total_ns, 30)});
  };
  row("waiting", b.wait_ns);
  row("running, sampled", b.running_ns);
  row("running, between samples", b.not_sampled_ns);
  row("ready, not running", b.ready_ns);
  row("[unattributed]", b.unattributed_ns);
  row("total", b.total_ns);
  return report::Heading("Where the time of " + what + " went, as their own threads saw it",
                         color) +
         table.ToText(width, color);
}

// As many frames from the leaf as fit, caller first.
std::string LeafPart(const std::vector<std::string>& frames, size_t width) {
  if (frames.empty()) return "[no stack]";
  std::string text = frames.back();
  size_t at = frames.size() - 1;
  while (at > 0 && text.size() + frames[at - 1].size() + 8 <= width) {
    text = frames[--at] + " > " + text;
  }
  return at > 0 ? "… > " + text : text;
}

std::vector<std::string> FrameNames(const Breakdown& b, trace::StackId stack) {
  std::vector<std::string> names;
  for (trace::FrameId frame : b.dictionary.StackFrames(stack)) {
    names.push_back(b.dictionary.FrameName(frame));
  }
  return names;
}

std::string PlantedNote(const InfoFacts& facts, std::string_view event_kind,
                        const std::vector<std::string>& frames) {
  for (const PlantedBug& bug : facts.truth) {
    if (bug.event_kind == event_kind && bug.Matches(frames)) {
      return (bug.noise ? "  = planted noise: " : "  = planted: ") + bug.name;
    }
  }
  return {};
}

std::string Costliest(const InfoFacts& facts, const std::vector<StackCost>& costs,
                      std::string_view event_kind, std::string_view title, size_t top, size_t width,
                      bool color) {
  if (costs.empty() || top == 0) return {};
  const Breakdown& b = facts.breakdown;
  std::string text = report::Heading(title, color);
  int64_t shown_ns = 0;
  int64_t all_ns = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    const StackCost& cost = costs[i];
    all_ns += cost.cost_ns;
    if (i >= top) continue;
    shown_ns += cost.cost_ns;
    const auto frames = FrameNames(b, cost.stack);
    text += "  " + FormatDuration(cost.cost_ns) + "  " + FormatShare(cost.cost_ns, b.total_ns) +
            "  " + Plural(cost.events, "event", "events") + " in " +
            Plural(cost.instances, facts.threads_as_instances ? "thread" : "instance",
                   facts.threads_as_instances ? "threads" : "instances");
    if (facts.is_corpus) text += " of " + Plural(cost.traces, "trace", "traces");
    text += PlantedNote(facts, event_kind, frames) + "\n";
    text += report::Note("      " + LeafPart(frames, width - 6), color);
  }
  if (costs.size() > top) {
    text += "  the other " + Plural(costs.size() - top, "stack", "stacks") + ": " +
            FormatDuration(all_ns - shown_ns) + "  " + FormatShare(all_ns - shown_ns, b.total_ns) +
            "\n";
  }
  return text + "\n";
}

std::string Truth(const InfoFacts& facts, size_t width, bool color) {
  if (facts.truth.empty()) return {};
  Table table;
  table.Column("planted").Column("kind").Column("in", Table::Align::kRight);
  table.Column("cost", Table::Align::kRight);
  table.Column("pattern", Table::Align::kLeft, true);
  for (const PlantedBug& bug : facts.truth) {
    std::string pattern;
    for (const std::string& frame : bug.pattern) pattern += (pattern.empty() ? "" : " > ") + frame;
    table.Row({bug.name + (bug.noise ? " (noise)" : ""), bug.kind, Number(bug.instances),
               FormatDuration(bug.cost_ns), pattern});
  }
  return report::Heading("The planted truth (truth.json)", color) + table.ToText(width, color) +
         "\n";
}

}  // namespace

std::string InfoText(const InfoFacts& facts, size_t top, size_t width, bool color) {
  const Breakdown& b = facts.breakdown;
  const std::string in = facts.threads_as_instances ? "over all threads" : "inside instances";
  std::string text = Head(facts, color) + "\n";
  const std::string skipped = Skipped(facts, color);
  if (!skipped.empty()) text += skipped + "\n";
  text += Inside(facts, width, color) + "\n";
  text += ScenarioTable(facts, width, color);
  text += WhereTimeWent(facts, width, color) + "\n";
  text += Costliest(facts, b.waits, "wait", "Costliest wait stacks " + in, top, width, color);
  text += Costliest(facts, b.running, "running", "Costliest running stacks " + in, top / 2, width,
                    color);
  text += Truth(facts, width, color);
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace culprit::cli
