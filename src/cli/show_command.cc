// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/json_writer.h"
#include "base/shell_word.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/show_graph.h"
#include "cli/show_path.h"
#include "cli/show_target.h"
#include "report/table.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/wait_graph.h"

namespace culprit::cli {
namespace {

std::string_view SourceText(InstanceSource source) {
  switch (source) {
    case InstanceSource::kTrace:
      return "";
    case InstanceSource::kFound:
      return "found automatically: a thread's work between two waits for the next request";
    case InstanceSource::kThreads:
      return "the trace has no instances and none were found: each thread is one";
  }
  return "";
}

// ---- the list to pick from

std::string ChoicesJson(const InstanceChoices& choices) {
  JsonWriter json;
  json.BeginObject().Field("instances", choices.instances).Key("slowest").BeginArray();
  for (const InstanceChoice& row : choices.rows) {
    json.BeginObject().Field("instance", row.name).Field("scenario", row.scenario);
    json.Field("thread", row.thread).Field("begin_ns", row.begin_ns).Field("dur_ns", row.dur_ns);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

InstanceWish WishOf(const Arguments& arguments) {
  return {.automatic = arguments.Has("--auto"),
          .found = {.idle = arguments.All("--idle"), .not_idle = arguments.All("--not-idle")}};
}

// The command that shows this instance, found as it was found here.
std::string NextCommand(const Arguments& arguments, const std::string& instance) {
  return "next: culprit show " + ShellWord(arguments.operands().front()) + " " +
         ShellWord(instance) + InstanceFlagsText(WishOf(arguments));
}

Result<int> ListInstances(const Arguments& arguments, const std::string& within, Output& output) {
  const std::string& path = arguments.operands().front();
  const size_t top = arguments.Has("--max-lines") ? arguments.Number("--max-lines") : 20;
  CULPRIT_ASSIGN(const InstanceChoices choices,
                 SlowestInstances(path,
                                  {.within = within,
                                   .scenario = arguments.Text("--scenario"),
                                   .top = top,
                                   .instances = WishOf(arguments)},
                                  output.progress()));
  if (arguments.Has("--json")) {
    output.Print(ChoicesJson(choices));
    return 0;
  }
  if (choices.rows.empty()) {
    output.Print("no instances\n");
    return 0;
  }
  report::Table table;
  table.Column("instance").Column("duration", report::Table::Align::kRight);
  table.Column("at", report::Table::Align::kRight).Column("scenario");
  table.Column("thread", report::Table::Align::kLeft, true);
  for (const InstanceChoice& row : choices.rows) {
    table.Row({row.name, FormatDuration(row.dur_ns), "+" + FormatDuration(row.begin_ns),
               row.scenario, row.thread});
  }
  output.Print(table.ToText(output.width(), output.color()));
  if (choices.instances > choices.rows.size()) {
    output.Print("… " + FormatCount(choices.instances - choices.rows.size()) + " more, faster\n");
  }
  const std::string_view source = SourceText(choices.rows.front().source);
  if (!source.empty()) output.Note(std::string(source));
  output.Note(NextCommand(arguments, choices.rows.front().name));
  return 0;
}

// ---- one instance

void PrintHead(const ShownInstance& shown, const waitgraph::SegmentText& text, Output& output) {
  const trace::Instance& instance = shown.instance();
  const trace::Metadata& metadata = shown.trace.trace->metadata;
  output.Print(report::Heading(shown.scenario() + "  " + FormatDuration(instance.dur_ns()) + "  " +
                                   text.Thread(instance.thread),
                               output.color()));
  std::vector<report::Fact> facts = {
      {"instance", shown.name() + " of " + shown.trace.name + ", from +" +
                       FormatDuration(instance.t0_ns - metadata.begin_ns)}};
  if (shown.trace.source != InstanceSource::kTrace) {
    facts.emplace_back("source", std::string(SourceText(shown.trace.source)));
  }
  if (!metadata.has_wakers) {
    facts.emplace_back("note", "the trace does not say who ended waits: they stay unexplained");
  }
  for (const auto& [what, row] : shown.trace.trace->diagnostics.rows()) {
    facts.emplace_back("damaged", FormatCount(row.count) + " x " + what);
  }
  output.Print(report::Facts(facts, output.color()) + "\n");
}

ShowLimits LimitsOf(const Arguments& arguments) {
  ShowLimits limits;
  limits.max_lines = arguments.Number("--max-lines");
  if (arguments.Has("--depth")) limits.max_depth = arguments.Number("--depth");
  return limits;
}

int ShowGraph(const Arguments& arguments, const ShownInstance& shown,
              const waitgraph::SegmentText& text, Output& output) {
  const waitgraph::WaitGraph graph =
      waitgraph::BuildWaitGraph(*shown.trace.timelines, shown.instance());
  const int64_t total_ns = shown.instance().dur_ns();
  if (arguments.Has("--json")) {
    output.Print(GraphJson(text, shown, graph));
    return 0;
  }
  const ShowTree tree = GraphTree(text, graph);
  if (arguments.Has("--dot")) {
    output.Print(
        TreeDot(tree, total_ns, shown.scenario() + " " + shown.name(), LimitsOf(arguments)));
    return 0;
  }
  PrintHead(shown, text, output);
  output.Print(
      report::Heading("wait graph, " + FormatCount(graph.nodes.size()) + " nodes", output.color()));
  output.Print(TreeText(tree, total_ns, LimitsOf(arguments), output.width()));
  output.Note(NextCommand(arguments, arguments.operands()[1]) + " --path");
  return 0;
}

int ShowPath(const Arguments& arguments, const ShownInstance& shown,
             const waitgraph::SegmentText& text, Output& output) {
  const waitgraph::CriticalPath path =
      waitgraph::FindCriticalPath(*shown.trace.timelines, shown.instance());
  const int64_t total_ns = shown.instance().dur_ns();
  if (arguments.Has("--json")) {
    output.Print(PathJson(text, shown, path));
    return 0;
  }
  const ShowTree tree = PathTree(text, path, arguments.Has("--sum"));
  if (arguments.Has("--dot")) {
    output.Print(
        TreeDot(tree, total_ns, shown.scenario() + " " + shown.name(), LimitsOf(arguments)));
    return 0;
  }
  PrintHead(shown, text, output);
  if (arguments.Has("--lanes")) {
    output.Print(
        LanesText(text, path, shown.instance(), arguments.Number("--max-lines"), output.width()));
  } else {
    output.Print(report::Heading("critical path", output.color()));
    output.Print(TreeText(tree, total_ns, LimitsOf(arguments), output.width()));
  }
  output.Print("\n" + report::Heading("who owned the time", output.color()));
  output.Print(OwnersText(text, path, 8, output.width(), output.color()));
  output.Note(NextCommand(arguments, arguments.operands()[1]) +
              (arguments.Has("--lanes") ? " --graph" : " --lanes"));
  return 0;
}

Result<int> RunShow(const Arguments& arguments, Output& output) {
  const std::vector<std::string>& operands = arguments.operands();
  if (operands.size() == 1) return ListInstances(arguments, "", output);
  std::error_code code;
  const bool is_folder = std::filesystem::is_directory(operands[0], code);
  // A trace of the corpus without an index: its instances.
  if (is_folder && operands[1].find(':') == std::string::npos) {
    return ListInstances(arguments, operands[1], output);
  }
  CULPRIT_ASSIGN(const ShownInstance shown,
                 FindShownInstance(operands[0], operands[1], WishOf(arguments)));
  const waitgraph::SegmentText text(*shown.trace.timelines, arguments.Number("--frames"));
  return arguments.Has("--graph") ? ShowGraph(arguments, shown, text, output)
                                  : ShowPath(arguments, shown, text, output);
}

std::vector<Flag> ShowFlags() {
  return {{.name = "--path", .help = "the critical path: who owned every nanosecond (the default)"},
          {.name = "--graph", .help = "the wait graph instead: all that can have to do with it"},
          {.name = "--lanes", .help = "the threads of the path as lanes, with who woke whom"},
          {.name = "--sum", .help = "add up what is alike under one wait, longest first"},
          {.name = "--depth",
           .letter = 'd',
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "show N levels of waits below the first"},
          {.name = "--max-lines",
           .letter = 'n',
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "show the N longest parts, or instances to pick from, or lanes",
           .default_text = "40"},
          {.name = "--frames",
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "name N frames of each stack",
           .default_text = "3"},
          {.name = "--scenario",
           .kind = ValueKind::kText,
           .value = "GLOB",
           .help = "list only instances of such scenarios"},
          {.name = "--auto", .help = "find instances even where they are marked"},
          {.name = "--idle",
           .kind = ValueKind::kText,
           .value = "GLOB",
           .help = "where instances are found: waits with such a frame are idle"},
          {.name = "--not-idle",
           .kind = ValueKind::kText,
           .value = "GLOB",
           .help = "where instances are found: waits with such a frame are never idle"},
          {.name = "--json", .help = "print JSON, nothing left out"},
          {.name = "--dot", .help = "print a graph for Graphviz's dot"}};
}

}  // namespace

Command ShowCommand() {
  return {
      .name = "show",
      .summary = "where the time of one instance went: its critical path or wait graph",
      .operands = "TRACE|CORPUS [INSTANCE]",
      .min_operands = 1,
      .max_operands = 2,
      .examples = {{"culprit show fleet", "the slowest instances, to pick from"},
                   {"culprit show fleet demo-00000:3", "who owned the time of one"},
                   {"culprit show slow.ctrace 0 --lanes", "its threads over time"},
                   {"culprit show slow.ctrace 0 --graph --dot | dot -Tsvg", "its wait graph"}},
      .flags = ShowFlags(),
      .details =
          "INSTANCE is INDEX in a trace and TRACE:INDEX in a corpus, as listed without it. A trace "
          "without instances has those found automatically, or else each of its threads.\n\n"
          "The critical path goes from each wait to the thread that ended it, within the wait, and "
          "so on: every nanosecond is owned by running code, a ready delay, a device, or is "
          "[unattributed]. The lines under a wait sum to it. Of too many lines the longest are "
          "shown and the rest is summed.",
      .run = &RunShow,
  };
}

}  // namespace culprit::cli
