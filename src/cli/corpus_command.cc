// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <optional>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/mine_options.h"
#include "corpus/corpus.h"
#include "corpus/summary_store.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using corpus::AddOutcome;
using corpus::CheckReport;
using corpus::Corpus;
using corpus::InstanceRow;
using corpus::ScenarioRow;
using corpus::TraceRow;
using report::Table;

constexpr auto kRight = Table::Align::kRight;
constexpr auto kLeft = Table::Align::kLeft;

// "1 trace", "2 traces".
std::string Counted(uint64_t count, const std::string& noun) {
  return FormatCount(count) + " " + noun + (count == 1 ? "" : "s");
}

Result<std::vector<std::pair<std::string, std::string>>> LabelsOf(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const std::string& text : arguments.All("--label")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{.message = "--label takes KEY=VALUE, not '" + text + "'"};
    }
    labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return labels;
}

void WarnOfError(const Error& error, Output& output) {
  output.Warn(error.ToString());
  if (!error.hint.empty()) output.Note("  hint: " + error.hint);
}

// ---- corpus add

void WarnOfDamage(const std::string& path, const AddOutcome& outcome, Output& output) {
  if (outcome.complete || outcome.kind != AddOutcome::Kind::kAdded) return;
  output.Warn(path + ": is damaged; what can be read was added as '" + outcome.name + "'");
  for (const auto& [what, row] : outcome.diagnostics.rows()) {
    std::string line = "  " + FormatCount(row.count) + " x " + what;
    if (row.first_offset) line += " (first at byte " + std::to_string(*row.first_offset) + ")";
    output.Note(line);
  }
}

Result<int> ReportAdded(const std::vector<std::string>& paths,
                        const std::vector<Result<AddOutcome>>& results, Output& output) {
  Table table;
  table.Column("outcome").Column("trace").Column("from", kLeft, true);
  uint64_t added = 0;
  uint64_t there = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!results[i].ok()) {
      WarnOfError(results[i].error(), output);
      continue;
    }
    const AddOutcome& outcome = results[i].value();
    WarnOfDamage(paths[i], outcome, output);
    const bool is_new = outcome.kind == AddOutcome::Kind::kAdded;
    ++(is_new ? added : there);
    table.Row({is_new ? "added" : "already there", outcome.name, paths[i]});
  }
  if (table.rows() != 0) output.Print(table.ToText(output.width(), output.color()));
  const uint64_t failed = paths.size() - added - there;
  std::string summary = "added " + Counted(added, "trace");
  if (there != 0) summary += ", " + FormatCount(there) + " already there";
  if (failed != 0) summary += ", " + FormatCount(failed) + " failed";
  output.Print(summary + "\n");
  return failed == 0 ? 0 : 1;
}

Result<int> RunAdd(const Arguments& arguments, Output& output) {
  const std::string& folder = arguments.operands().front();
  const std::vector<std::string> paths(arguments.operands().begin() + 1,
                                       arguments.operands().end());
  CULPRIT_ASSIGN(const auto labels, LabelsOf(arguments));
  const corpus::AddOptions options{.name = arguments.Text("--name"),
                                   .labels = {labels.begin(), labels.end()}};
  if (arguments.Has("--name") && paths.size() > 1) {
    return Error{.message = "--name names one trace; " + std::to_string(paths.size()) +
                            " files were given"};
  }
  CULPRIT_ASSIGN(Corpus corpus, Corpus::Create(folder));
  std::vector<Result<AddOutcome>> results;
  if (options.name.empty()) {
    results = corpus.AddMany(paths, options, arguments.Number("--jobs"), output.progress());
  } else {
    results.push_back(corpus.Add(paths.front(), options));
  }
  CULPRIT_ASSIGN(const int code, ReportAdded(paths, results, output));
  output.Note("next: culprit info " + folder);
  return code;
}

// ---- corpus list

std::string LabelsText(const TraceRow& row) {
  std::string text;
  for (const auto& [key, value] : row.labels) {
    if (!text.empty()) text += " ";
    text.append(key).append("=").append(value);
  }
  return text;
}

void PrintTraces(const std::vector<TraceRow>& rows, Output& output) {
  Table table;
  table.Column("trace").Column("duration", kRight).Column("events", kRight);
  table.Column("threads", kRight).Column("instances", kRight).Column("size", kRight);
  table.Column("state").Column("app").Column("labels", kLeft, true);
  uint64_t events = 0;
  uint64_t bytes = 0;
  for (const TraceRow& row : rows) {
    table.Row({row.name, FormatDuration(row.dur_ns), FormatCount(row.events),
               FormatCount(row.threads), FormatCount(row.instances), FormatBytes(row.bytes),
               row.complete ? "whole" : "damaged", row.app, LabelsText(row)});
    events += row.events;
    bytes += row.bytes;
  }
  if (!rows.empty()) output.Print(table.ToText(output.width(), output.color()));
  output.Print(Counted(rows.size(), "trace") + ", " + Counted(events, "event") + ", " +
               FormatBytes(bytes) + "\n");
}

void WriteTrace(const TraceRow& row, JsonWriter& json) {
  json.BeginObject().Field("name", row.name).Field("file", "traces/" + row.file);
  json.Field("sha256", row.sha256).Field("bytes", row.bytes).Field("events", row.events);
  json.Field("begin_ns", row.begin_ns).Field("end_ns", row.end_ns).Field("dur_ns", row.dur_ns);
  json.Field("cpus", row.cpus).Field("threads", row.threads).Field("instances", row.instances);
  json.Field("complete", row.complete).Field("damaged_blocks", row.damaged_blocks);
  json.Field("skipped", row.skipped).Field("has_switches", row.has_switches);
  json.Field("has_wakers", row.has_wakers);
  json.Key("kinds").BeginObject();
  for (size_t kind = 0; kind < trace::kEventKinds; ++kind)
    json.Field(trace::kEventKindNames[kind], row.kind_counts[kind]);
  json.EndObject();
  json.Field("machine", row.machine).Field("os", row.os).Field("kernel", row.kernel);
  json.Field("arch", row.arch).Field("app", row.app).Field("app_version", row.app_version);
  json.Field("source", row.source).Field("added_ns", row.added_ns);
  json.Key("labels").BeginObject();
  for (const auto& [key, value] : row.labels) json.Field(key, value);
  json.EndObject().EndObject();
}

void PrintScenarios(const std::vector<ScenarioRow>& rows, Output& output) {
  Table table;
  table.Column("scenario", kLeft, true).Column("instances", kRight).Column("traces", kRight);
  table.Column("p50", kRight).Column("p90", kRight).Column("min", kRight).Column("max", kRight);
  uint64_t instances = 0;
  for (const ScenarioRow& row : rows) {
    table.Row({row.name, FormatCount(row.instances), FormatCount(row.traces),
               FormatDuration(row.p50_ns), FormatDuration(row.p90_ns), FormatDuration(row.min_ns),
               FormatDuration(row.max_ns)});
    instances += row.instances;
  }
  if (!rows.empty()) output.Print(table.ToText(output.width(), output.color()));
  output.Print(Counted(rows.size(), "scenario") + ", " + Counted(instances, "instance") + "\n");
}

void WriteScenario(const ScenarioRow& row, JsonWriter& json) {
  json.BeginObject().Field("name", row.name).Field("instances", row.instances);
  json.Field("traces", row.traces).Field("p50_ns", row.p50_ns).Field("p90_ns", row.p90_ns);
  json.Field("min_ns", row.min_ns).Field("max_ns", row.max_ns).Field("total_ns", row.total_ns);
  json.EndObject();
}

// Where in its trace an instance lies is told from the trace's begin: the
// clock's own origin means nothing to a person.
Status PrintInstances(const Corpus& corpus, const std::vector<InstanceRow>& rows, Output& output) {
  CULPRIT_ASSIGN(const std::vector<TraceRow> traces, corpus.List());
  std::map<int64_t, int64_t> begin_ns;
  for (const TraceRow& row : traces) begin_ns[row.id] = row.begin_ns;
  Table table;
  table.Column("duration", kRight).Column("trace").Column("instance", kRight);
  table.Column("begins after", kRight).Column("process").Column("thread", kLeft, true);
  table.Column("tid", kRight);
  for (const InstanceRow& row : rows) {
    int64_t after_ns = 0;  // of a damaged trace it may be out of any range
    if (__builtin_sub_overflow(row.t0_ns, begin_ns[row.trace], &after_ns)) after_ns = INT64_MAX;
    table.Row({FormatDuration(row.dur_ns), row.trace_name, std::to_string(row.index),
               FormatDuration(after_ns), row.process_name, row.thread_name,
               std::to_string(row.tid)});
  }
  output.Print(table.ToText(output.width(), output.color()));
  output.Print(Counted(rows.size(), "instance") + ", slowest first\n");
  return {};
}

void WriteInstance(const InstanceRow& row, JsonWriter& json) {
  json.BeginObject().Field("trace", row.trace_name).Field("index", row.index);
  json.Field("tid", row.tid).Field("thread", row.thread_name).Field("process", row.process_name);
  json.Field("t0_ns", row.t0_ns).Field("t1_ns", row.t1_ns).Field("dur_ns", row.dur_ns);
  json.EndObject();
}

// {KEY: [...]}, written in parts.
template <class Row>
void PrintJson(std::string_view key, const std::vector<Row>& rows,
               void (*write)(const Row&, JsonWriter&), Output& output) {
  JsonWriter json;
  json.BeginObject().Key(key).BeginArray();
  for (const Row& row : rows) {
    write(row, json);
    output.Print(json.Take());
  }
  json.EndArray().EndObject();
  output.Print(json.Take() + "\n");
}

Result<corpus::TraceFilter> FilterOf(const Arguments& arguments) {
  corpus::TraceFilter filter;
  CULPRIT_ASSIGN(filter.labels, LabelsOf(arguments));
  if (arguments.Has("--app")) filter.app = arguments.Text("--app");
  if (arguments.Has("--scenario")) filter.scenario = arguments.Text("--scenario");
  if (arguments.Has("--name")) filter.name_glob = arguments.Text("--name");
  if (arguments.Has("--min-duration")) filter.min_dur_ns = arguments.DurationNs("--min-duration");
  return filter;
}

Status CheckListFlags(const Arguments& arguments) {
  const bool scenarios = arguments.Has("--scenarios");
  const bool instances = arguments.Has("--instances");
  if (scenarios && instances) {
    return Error{.message = "--scenarios and --instances are two lists: ask for one"};
  }
  if (arguments.Has("--limit") && !instances) {
    return Error{.message = "--limit only goes with --instances"};
  }
  if (!scenarios && !instances) return {};
  for (std::string_view flag : {"--label", "--app", "--scenario", "--name", "--min-duration"}) {
    if (arguments.Has(flag)) {
      return Error{.message = std::string(flag) + " chooses traces; it does not go with " +
                              (scenarios ? "--scenarios" : "--instances")};
    }
  }
  return {};
}

Result<int> RunList(const Arguments& arguments, Output& output) {
  CULPRIT_TRY(CheckListFlags(arguments));
  CULPRIT_ASSIGN(const corpus::TraceFilter filter, FilterOf(arguments));
  CULPRIT_ASSIGN(const Corpus corpus, Corpus::Open(arguments.operands().front()));
  const bool json = arguments.Has("--json");
  if (arguments.Has("--scenarios")) {
    CULPRIT_ASSIGN(const auto rows, corpus.Scenarios());
    if (json) {
      PrintJson("scenarios", rows, WriteScenario, output);
    } else {
      PrintScenarios(rows, output);
    }
  } else if (arguments.Has("--instances")) {
    CULPRIT_ASSIGN(const auto rows,
                   corpus.Instances(arguments.Text("--instances"), arguments.Number("--limit")));
    if (json) {
      PrintJson("instances", rows, WriteInstance, output);
    } else {
      CULPRIT_TRY(PrintInstances(corpus, rows, output));
    }
  } else {
    CULPRIT_ASSIGN(const auto rows, corpus.List(filter));
    if (json) {
      PrintJson("traces", rows, WriteTrace, output);
    } else {
      PrintTraces(rows, output);
    }
  }
  return 0;
}

// ---- corpus rm

Result<int> RunRemove(const Arguments& arguments, Output& output) {
  const std::vector<std::string> names(arguments.operands().begin() + 1,
                                       arguments.operands().end());
  CULPRIT_ASSIGN(Corpus corpus, Corpus::Open(arguments.operands().front()));
  CULPRIT_ASSIGN(const uint64_t removed, corpus.Remove(names));
  output.Print("removed " + Counted(removed, "trace") + "\n");
  return 0;
}

// ---- corpus check

void PrintReport(const CheckReport& report, Output& output) {
  if (report.catalog_rebuilt) {
    output.Print(
        "rebuilt the catalog from the trace files" +
        (report.old_catalog.empty() ? std::string() : "; the old one is " + report.old_catalog) +
        "\n");
  }
  if (!report.strays.empty()) {
    Table strays;
    strays.Column("stray file", kLeft, true).Column("what");
    for (const auto& stray : report.strays) strays.Row({stray.file, stray.what});
    output.Print(strays.ToText(output.width(), output.color()) + "\n");
  }
  if (!report.problems.empty()) {
    Table problems;
    problems.Column("trace").Column("problem").Column("file", kLeft, true);
    for (const auto& problem : report.problems)
      problems.Row({problem.trace, problem.what, problem.file});
    output.Print(problems.ToText(output.width(), output.color()) + "\n");
  }
  std::string summary =
      "checked " + Counted(report.traces, "trace") + ", " + Counted(report.events, "event") + ": ";
  summary += report.ok() ? "no problem" : Counted(report.problems.size(), "problem");
  if (report.damaged_when_added != 0)
    summary += "; damaged when added, unchanged since: " + FormatCount(report.damaged_when_added);
  if (report.summaries != 0)
    summary += "; " + FormatCount(report.summaries) +
               (report.summaries == 1 ? " summary of " : " summaries of ") +
               FormatBytes(report.summary_bytes);
  output.Print(summary + "\n");
}

void PrintReportJson(const CheckReport& report, Output& output) {
  JsonWriter json;
  json.BeginObject().Field("traces", report.traces).Field("events", report.events);
  json.Field("bytes", report.bytes).Field("damaged_when_added", report.damaged_when_added);
  json.Field("summaries", report.summaries).Field("summary_bytes", report.summary_bytes);
  json.Field("catalog_rebuilt", report.catalog_rebuilt).Field("old_catalog", report.old_catalog);
  json.Key("problems").BeginArray();
  for (const auto& problem : report.problems) {
    json.BeginObject().Field("trace", problem.trace).Field("file", problem.file);
    json.Field("what", problem.what).EndObject();
  }
  json.EndArray().Key("strays").BeginArray();
  for (const auto& stray : report.strays)
    json.BeginObject().Field("file", stray.file).Field("what", stray.what).EndObject();
  json.EndArray().EndObject();
  output.Print(json.Take() + "\n");
}

Result<int> RunCheck(const Arguments& arguments, Output& output) {
  const std::string& folder = arguments.operands().front();
  const corpus::CheckOptions options{.repair = arguments.Has("--repair"),
                                     .jobs = arguments.Number("--jobs")};
  CULPRIT_ASSIGN(const CheckReport report, CheckCorpus(folder, options, output.progress()));
  if (arguments.Has("--json")) {
    PrintReportJson(report, output);
  } else {
    PrintReport(report, output);
  }
  if (!report.strays.empty() && !options.repair)
    output.Note("next: culprit corpus check " + folder + " --repair");
  return report.ok() ? 0 : 1;
}

// ---- corpus trim

Result<int> RunTrim(const Arguments& arguments, Output& output) {
  const std::string& folder = arguments.operands().front();
  const std::string text = arguments.Text("--keep");
  const auto keep = text == "0" ? std::optional<uint64_t>(0) : ParseBytes(text);
  if (!keep) {
    return Error{.message = "'" + text + "' is no size", .hint = "write it as 500MB or 2GB"};
  }
  CULPRIT_TRY(Corpus::Open(folder));
  CULPRIT_ASSIGN(const corpus::SummariesRemoved removed, corpus::TrimSummaries(folder, *keep));
  const auto summaries = [](uint64_t files, uint64_t bytes) {
    return FormatCount(files) + (files == 1 ? " summary (" : " summaries (") + FormatBytes(bytes) +
           ")";
  };
  output.Print("removed " + summaries(removed.files, removed.bytes) + ", kept " +
               summaries(removed.files_left, removed.bytes_left) + "\n");
  return 0;
}

// ---- the table

constexpr Flag JobsFlag() {
  return {.name = "--jobs",
          .letter = 'j',
          .kind = ValueKind::kNumber,
          .value = "N",
          .help = "how many traces to read at a time; 0: one per processor",
          .default_text = "0"};
}

Command AddCommand() {
  return {.name = "corpus add",
          .summary = "copy traces into a corpus, which is made if it does not exist",
          .operands = "CORPUS TRACE...",
          .min_operands = 2,
          .max_operands = SIZE_MAX,
          .examples = {{"culprit corpus add c run.ctrace", "one trace"},
                       {"culprit corpus add c *.ctrace --label release=2.1",
                        "many, with a label to find them by"}},
          .flags = {{.name = "--label",
                     .kind = ValueKind::kText,
                     .value = "KEY=VALUE",
                     .help = "a label for every trace given; may be repeated"},
                    {.name = "--name",
                     .kind = ValueKind::kText,
                     .value = "NAME",
                     .help = "name of the one trace given; otherwise the file's name"},
                    JobsFlag()},
          .details =
              "A trace whose content is already in the corpus is not added again; labels "
              "given for it are set. A name that is taken gets a suffix -2, -3 and so on. "
              "Of a damaged trace, what can be read is added, with a warning. A file that "
              "is no trace does not stop the others; the exit code is then 1. Each trace "
              "is either wholly added or not at all, even when the command is killed; it "
              "may be run again, and several may run at the same time.",
          .run = RunAdd};
}

Command ListCommand() {
  return {.name = "corpus list",
          .summary = "list the traces, scenarios or instances of a corpus",
          .operands = "CORPUS",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"culprit corpus list c", "its traces"},
                       {"culprit corpus list c --scenarios", "how long each scenario takes"},
                       {"culprit corpus list c --instances OpenFolder --limit 10",
                        "the ten slowest instances of a scenario"}},
          .flags = {{.name = "--scenarios", .help = "list scenarios with count, p50 and p90"},
                    {.name = "--instances",
                     .kind = ValueKind::kText,
                     .value = "SCENARIO",
                     .help = "list the instances of a scenario, slowest first"},
                    {.name = "--limit",
                     .kind = ValueKind::kNumber,
                     .value = "N",
                     .help = "at most so many instances; 0: all",
                     .default_text = "0"},
                    {.name = "--label",
                     .kind = ValueKind::kText,
                     .value = "KEY=VALUE",
                     .help = "only traces with this label; repeated, with all of them"},
                    {.name = "--app",
                     .kind = ValueKind::kText,
                     .value = "APP",
                     .help = "only traces of this application"},
                    {.name = "--scenario",
                     .kind = ValueKind::kText,
                     .value = "SCENARIO",
                     .help = "only traces with an instance of this scenario"},
                    {.name = "--name",
                     .kind = ValueKind::kText,
                     .value = "GLOB",
                     .help = "only traces whose name matches, with * ? [a-z]"},
                    {.name = "--min-duration",
                     .kind = ValueKind::kDuration,
                     .value = "D",
                     .help = "only traces at least this long"},
                    {.name = "--json", .help = "print JSON"}},
          .details =
              "Percentiles are by nearest rank: of n sorted durations, p90 is the one at "
              "position ceil(0.9 n).",
          .run = RunList};
}

Command RemoveCommand() {
  return {.name = "corpus rm",
          .summary = "remove traces from a corpus",
          .operands = "CORPUS NAME...",
          .min_operands = 2,
          .max_operands = SIZE_MAX,
          .examples = {{"culprit corpus rm c run-7", "one trace, by its name"}},
          .flags = {},
          .details = "All of the names, or none: an unknown name leaves the corpus as it was.",
          .run = RunRemove};
}

Command CheckCommand() {
  return {.name = "corpus check",
          .summary = "read every trace of a corpus and hold it against the catalog",
          .operands = "CORPUS",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"culprit corpus check c", "is everything there and whole?"},
                       {"culprit corpus check c --repair",
                        "also clean up after killed commands, or rebuild a lost catalog"}},
          .flags = {{.name = "--repair",
                     .help = "deal with stray files; rebuild a catalog that is lost or broken"},
                    {.name = "--json", .help = "print JSON"},
                    JobsFlag()},
          .details =
              "For every trace: the file is there, its size and SHA-256 are those of the "
              "catalog, every block decodes, and the counts of events and the instances "
              "agree. The exit code is 1 if there is any problem. Stray files, left by "
              "commands that were killed, are listed but are no problem.\n\n"
              "Repair adds stray traces to the catalog, removes files that a dead process "
              "left half-written, and finishes interrupted removals. A catalog that is "
              "missing or unreadable is made anew from the trace files; the old one is "
              "kept as catalog.sqlite.broken-N, and its names and labels are taken over "
              "where they can be read. Traces that fail the check are left for you to "
              "remove or to add again.",
          .run = RunCheck};
}

Command TrimCommand() {
  return {.name = "corpus trim",
          .summary = "remove summaries that analyses have kept in a corpus",
          .operands = "CORPUS",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"culprit corpus trim c", "all of them"},
                       {"culprit corpus trim c --keep 2GB", "those that were not used lately"}},
          .flags = {{.name = "--keep",
                     .kind = ValueKind::kText,
                     .value = "SIZE",
                     .help = "leave the ones used last, up to this size together",
                     .default_text = "0"}},
          .details =
              "Analyses keep what they took from each trace, so that a trace is read once for each "
              "kind of question. Removing it costs time, nothing else: the next analysis makes it "
              "again. Traces are not touched.",
          .run = RunTrim};
}

}  // namespace

std::vector<Command> CorpusCommands() {
  return {AddCommand(), ListCommand(), RemoveCommand(), CheckCommand(), TrimCommand()};
}

}  // namespace culprit::cli
