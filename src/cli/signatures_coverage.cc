// SPDX-License-Identifier: Apache-2.0
#include "cli/signatures_coverage.h"

#include <algorithm>
#include <numeric>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/mine_facts.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "stackmine/review.h"
#include "stackmine/summary.h"

namespace culprit::cli {
namespace {

using report::Table;
using stackmine::Cover;
using stackmine::Metrics;
using stackmine::Review;
using stackmine::Signature;
using stackmine::SignatureStatus;

// Behaviours of a corpus, most covering first, and what they cover together.
struct Coverage {
  bool of_clusters = false;  // there are no signatures: clusters stand for them
  struct Row {
    std::string name;
    std::string status;
    const Metrics* metrics = nullptr;
    int64_t gain_ns = 0;  // beyond the rows before
  };
  std::vector<Row> rows;
  std::vector<Metrics> metrics;  // by label
  Cover cover;
  Review review;
  int64_t covered_ns = 0;
};

void RankRows(Coverage& coverage) {
  std::vector<uint32_t> order(coverage.metrics.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return coverage.metrics[a].time_ns > coverage.metrics[b].time_ns;
  });
  std::vector<uint32_t> rank(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  const std::vector<int64_t> gains = stackmine::GainByRank(coverage.cover, rank);
  std::vector<Coverage::Row> rows;
  for (const uint32_t label : order) {
    Coverage::Row& row = rows.emplace_back(std::move(coverage.rows[label]));
    row.metrics = &coverage.metrics[label];
    row.gain_ns = gains[label];
    coverage.covered_ns += row.gain_ns;
  }
  coverage.rows = std::move(rows);
}

Coverage Compute(const MineFacts& facts, const Arguments& arguments) {
  Coverage coverage;
  coverage.of_clusters = arguments.Has("--clusters") || facts.signatures.empty();
  if (coverage.of_clusters) {
    coverage.cover = facts.result.cover;
    coverage.metrics.resize(facts.result.clusters.size());
    coverage.rows.resize(facts.result.clusters.size());
    for (const stackmine::Cluster& cluster : facts.result.clusters) {
      coverage.metrics[cluster.label] = cluster.metrics;
      coverage.rows[cluster.label].name =
          cluster.id + "  " + stackmine::Summarize(facts.evidence, cluster);
    }
  } else {
    const stackmine::StackLabels labels = stackmine::LabelBySignature(
        facts.evidence, facts.result, facts.signatures, facts.known, arguments.Number("--jobs"));
    coverage.cover = stackmine::MakeCover(facts.evidence, labels, facts.result.runs_by_thread);
    coverage.metrics =
        stackmine::Measure(facts.evidence, labels, coverage.cover, facts.signatures.size());
    for (const Signature& signature : facts.signatures) {
      coverage.rows.push_back(
          {.name = signature.name, .status = std::string(Name(signature.status))});
    }
  }
  RankRows(coverage);
  coverage.review = stackmine::CompareReviews(facts.evidence, coverage.cover, coverage.metrics,
                                              {.seed = arguments.Number("--seed")});
  return coverage;
}

// The coverages asked about: tenths of the total, and all that is reached.
std::vector<int64_t> Targets(const Coverage& coverage, int64_t total_ns) {
  std::vector<int64_t> targets;
  for (int64_t tenths = 1; tenths <= 10; ++tenths) {
    const int64_t target_ns = total_ns / 10 * tenths;
    if (target_ns > 0 && target_ns < coverage.covered_ns) targets.push_back(target_ns);
  }
  if (coverage.covered_ns > 0) targets.push_back(coverage.covered_ns);
  return targets;
}

std::string Count(const std::optional<uint64_t>& traces) {
  return traces ? FormatCount(*traces) : "-";
}

std::string CoverageText(const MineFacts& facts, const Coverage& coverage, const Output& output,
                         size_t show) {
  const int64_t total_ns = facts.total_ns();
  Table table;
  table.Column("coverage", Table::Align::kRight);
  for (const char* header : {"time", "cost", "traces", "instances"}) {
    table.Column(header, Table::Align::kRight);
  }
  if (!coverage.of_clusters) table.Column("status");
  table.Column(coverage.of_clusters ? "cluster" : "signature", Table::Align::kLeft, true);
  int64_t so_far_ns = 0;
  for (size_t i = 0; i < coverage.rows.size() && i < show; ++i) {
    const Coverage::Row& row = coverage.rows[i];
    so_far_ns += row.gain_ns;
    std::vector<std::string> cells = {
        FormatShare(so_far_ns, total_ns), FormatDuration(row.metrics->time_ns),
        FormatDuration(row.metrics->cost_ns), FormatCount(row.metrics->traces),
        FormatCount(row.metrics->instances)};
    if (!coverage.of_clusters) cells.push_back(row.status);
    cells.push_back(row.name);
    table.Row(std::move(cells));
  }
  std::string text = report::Heading(
      facts.path + ": " + std::to_string(coverage.rows.size()) +
          (coverage.of_clusters ? " clusters (no signatures) cover " : " signatures cover ") +
          FormatShare(coverage.covered_ns, total_ns) + " of " + FormatDuration(total_ns),
      output.color());
  text += table.ToText(output.width(), output.color());
  text += report::Note("in the rows above " + FormatDuration(so_far_ns) + ", in the others " +
                           FormatDuration(coverage.covered_ns - so_far_ns) + ", in none " +
                           FormatDuration(total_ns - coverage.covered_ns) + ", total " +
                           FormatDuration(total_ns),
                       output.color());
  if (!facts.is_corpus) return text;
  Table review;
  review.Column("coverage", Table::Align::kRight);
  for (const char* header : {"culprit", "random", "greedy-total", "greedy-max"}) {
    review.Column(header, Table::Align::kRight);
  }
  for (const int64_t target_ns : Targets(coverage, total_ns)) {
    review.Row({FormatShare(target_ns, total_ns),
                Count(coverage.review.culprit.TracesFor(target_ns)),
                Count(coverage.review.RandomTracesFor(target_ns)),
                Count(coverage.review.greedy_total.TracesFor(target_ns)),
                Count(coverage.review.greedy_max.TracesFor(target_ns))});
  }
  return text + "\n" +
         report::Heading("Traces to open to reach a coverage, of " +
                             std::to_string(facts.evidence.traces.size()),
                         output.color()) +
         review.ToText(output.width(), output.color());
}

void Curve(const char* key, const stackmine::ReviewCurve& curve, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const int64_t ns : curve.covered_ns) json.Int(ns);
  json.EndArray();
}

std::string CoverageJson(const MineFacts& facts, const Coverage& coverage) {
  JsonWriter json;
  json.BeginObject().Field("total_ns", facts.total_ns()).Field("covered_ns", coverage.covered_ns);
  json.Field("rest_ns", facts.total_ns() - coverage.covered_ns);
  json.Field("traces", facts.evidence.traces.size());
  json.Key(coverage.of_clusters ? "clusters" : "signatures").BeginArray();
  for (const Coverage::Row& row : coverage.rows) {
    json.BeginObject().Field("name", std::string_view(row.name));
    if (!row.status.empty()) json.Field("status", std::string_view(row.status));
    json.Field("time_ns", row.metrics->time_ns).Field("cost_ns", row.metrics->cost_ns);
    json.Field("gain_ns", row.gain_ns).Field("traces", row.metrics->traces);
    json.Field("instances", row.metrics->instances).Field("events", row.metrics->events);
    json.EndObject();
  }
  json.EndArray().Key("covered_after_traces_ns").BeginObject();
  Curve("culprit", coverage.review.culprit, json);
  Curve("random", coverage.review.random, json);
  Curve("greedy_total", coverage.review.greedy_total, json);
  Curve("greedy_max", coverage.review.greedy_max, json);
  json.EndObject().EndObject();
  return json.Take() + "\n";
}

void WarnUnreadable(const MineFacts& facts, Output& output) {
  for (const std::string& error : facts.evidence.unreadable) output.Warn("not read: " + error);
}

Result<int> RunCoverage(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  CULPRIT_ASSIGN(const MineFacts facts, GatherMine(arguments.operands().front(), settings,
                                                   StorePath(arguments), output.progress()));
  WarnUnreadable(facts, output);
  const Coverage coverage = Compute(facts, arguments);
  output.Print(arguments.Has("--json")
                   ? CoverageJson(facts, coverage)
                   : CoverageText(facts, coverage, output, arguments.Number("--show")));
  return 0;
}

// ---- check

// "1%" of the total, or "300ms".
Result<int64_t> ReadBound(const Arguments& arguments, std::string_view flag, int64_t total_ns) {
  const std::string text = arguments.Text(flag);
  if (const auto dur_ns = ParseDuration(text); dur_ns && *dur_ns >= 0) return *dur_ns;
  if (const auto share = stackmine::ParseShare(text)) return stackmine::ShareOf(*share, total_ns);
  return Error{.message = "'" + text + "' for " + std::string(flag) + " is no time and no share",
               .hint = "write it as 300ms or 1%"};
}

struct Violation {
  std::string kind;  // "new", "fixed"
  std::string name;
  std::string what;
  std::string example;
  int64_t time_ns = 0;
};

// Behind a known wait its cause is known too.
bool InsideKnown(const MineFacts& facts, size_t at) {
  for (uint32_t around = facts.result.clusters[at].part_of; around != stackmine::kNoCluster;
       around = facts.result.clusters[around].part_of) {
    if (facts.SignatureOf(around) != nullptr) return true;
  }
  return false;
}

std::string ExampleOf(const MineFacts& facts, const Metrics& metrics) {
  return metrics.examples.empty() ? std::string() : ShowCommand(facts, metrics.examples.front());
}

Result<std::vector<Violation>> FindViolations(const MineFacts& facts, const Arguments& arguments) {
  CULPRIT_ASSIGN(const int64_t max_new_ns, ReadBound(arguments, "--max-new", facts.total_ns()));
  CULPRIT_ASSIGN(const int64_t max_fixed_ns, ReadBound(arguments, "--max-fixed", facts.total_ns()));
  std::vector<Violation> violations;
  for (size_t i = 0; i < facts.result.clusters.size(); ++i) {
    const stackmine::Cluster& cluster = facts.result.clusters[i];
    if (facts.SignatureOf(i) != nullptr || InsideKnown(facts, i)) continue;
    if (cluster.metrics.time_ns <= max_new_ns) continue;
    violations.push_back({.kind = "new",
                          .name = cluster.id,
                          .what = stackmine::Summarize(facts.evidence, cluster),
                          .example = ExampleOf(facts, cluster.metrics),
                          .time_ns = cluster.metrics.time_ns});
  }
  const stackmine::StackLabels labels = stackmine::LabelBySignature(
      facts.evidence, facts.result, facts.signatures, facts.known, arguments.Number("--jobs"));
  const Cover cover = stackmine::MakeCover(facts.evidence, labels, facts.result.runs_by_thread);
  const std::vector<Metrics> metrics =
      stackmine::Measure(facts.evidence, labels, cover, facts.signatures.size());
  for (size_t s = 0; s < facts.signatures.size(); ++s) {
    const Signature& signature = facts.signatures[s];
    if (signature.status != SignatureStatus::kFixed || metrics[s].time_ns <= max_fixed_ns) continue;
    violations.push_back({.kind = "fixed",
                          .name = signature.name,
                          .what = "was fixed and is back",
                          .example = ExampleOf(facts, metrics[s]),
                          .time_ns = metrics[s].time_ns});
  }
  return violations;
}

std::string ViolationsJson(const MineFacts& facts, const std::vector<Violation>& violations) {
  JsonWriter json;
  json.BeginObject().Field("ok", violations.empty()).Field("total_ns", facts.total_ns());
  json.Key("violations").BeginArray();
  for (const Violation& v : violations) {
    json.BeginObject()
        .Field("kind", std::string_view(v.kind))
        .Field("name", std::string_view(v.name));
    json.Field("time_ns", v.time_ns).Field("what", std::string_view(v.what));
    json.Field("example", std::string_view(v.example)).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string ViolationsText(const MineFacts& facts, const std::vector<Violation>& violations) {
  const std::string held = std::to_string(facts.result.clusters.size()) + " clusters against " +
                           std::to_string(facts.signatures.size()) + " signatures: ";
  if (violations.empty()) return held + "nothing new, nothing back\n";
  std::string text = held + std::to_string(violations.size()) + " to look at\n";
  for (const Violation& v : violations) {
    text += "  " + v.kind + "  " + report::PlainText(v.name) + "  " + FormatDuration(v.time_ns) +
            " (" + FormatShare(v.time_ns, facts.total_ns()) + ")  " + report::PlainText(v.what) +
            "\n";
    if (!v.example.empty()) text += "         " + report::PlainText(v.example) + "\n";
  }
  return text;
}

Result<int> RunCheck(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const MineSettings settings, ReadMineFlags(arguments));
  CULPRIT_ASSIGN(const MineFacts facts, GatherMine(arguments.operands().front(), settings,
                                                   StorePath(arguments), output.progress()));
  WarnUnreadable(facts, output);
  CULPRIT_ASSIGN(const std::vector<Violation> violations, FindViolations(facts, arguments));
  output.Print(arguments.Has("--json") ? ViolationsJson(facts, violations)
                                       : ViolationsText(facts, violations));
  // A trace that cannot be read was not checked.
  return violations.empty() && facts.evidence.unreadable.empty() ? 0 : 1;
}

}  // namespace

Command CoverageCommand() {
  Command command;
  command.name = "signatures coverage";
  command.summary = "how much of a corpus the known behaviours explain";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {{"culprit signatures coverage fleet", "what the store explains of a corpus"},
                      {"culprit signatures coverage fleet --clusters",
                       "the same for its clusters, as if all known"}};
  command.flags = MineFlags();
  command.flags.push_back({.name = "--clusters", .help = "take the clusters, not the signatures"});
  command.flags.push_back({.name = "--show",
                           .letter = 'n',
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "rows to show",
                           .default_text = "30"});
  command.flags.push_back({.name = "--seed",
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "of the random order",
                           .default_text = "1"});
  command.flags.push_back({.name = "--json", .help = "print JSON"});
  command.flags.push_back(StoreFlag());
  command.details =
      "Coverage is the time any signature has over the time of all instances. The second table "
      "tells how many traces one must open until the behaviours seen in them reach a coverage: "
      "in culprit's order, at random (averaged), and beginning with the traces of the largest "
      "total or longest delay. Without signatures the clusters stand for them.";
  command.run = &RunCoverage;
  return command;
}

Command SignaturesCheckCommand() {
  Command command;
  command.name = "signatures check";
  command.summary = "for CI: fail if something new is costly or something fixed is back";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit signatures check nightly --store perf/signatures.json", "exit code 1 if not"},
      {"culprit signatures check nightly --max-new 500ms --json",
       "with another bound, for a script"}};
  command.flags = MineFlags();
  command.flags.push_back({.name = "--max-new",
                           .kind = ValueKind::kText,
                           .value = "BOUND",
                           .help = "an unknown cluster may have so much: 1% or 300ms",
                           .default_text = "1%"});
  command.flags.push_back({.name = "--max-fixed",
                           .kind = ValueKind::kText,
                           .value = "BOUND",
                           .help = "a fixed signature may have so much",
                           .default_text = "0.1%"});
  command.flags.push_back({.name = "--json", .help = "print JSON"});
  command.flags.push_back(StoreFlag());
  command.details =
      "The exit code is 1 if a cluster that no signature has takes more of the instances' time "
      "than --max-new and does not lie behind the waits of a known one, if a signature of status "
      "fixed takes more than --max-fixed, or if a trace could not be read.";
  command.run = &RunCheck;
  return command;
}

}  // namespace culprit::cli
