// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/mine_facts.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "stackmine/summary.h"

namespace culprit::cli {
namespace {

using report::Fact;
using report::PlainText;
using report::Table;
using stackmine::Cluster;
using stackmine::Evidence;
using stackmine::FrameSymbol;
using stackmine::Metrics;
using stackmine::StackKind;

constexpr size_t kMaxRoles = 8;
constexpr size_t kMaxVariantsShown = 12;
// Distinct and charged costs this far apart (a tenth) are worth a word.
constexpr int64_t kConvoyTenths = 11;

std::string Plural(uint64_t count, std::string_view one, std::string_view many) {
  return FormatCount(count) + " " + std::string(count == 1 ? one : many);
}

std::string ScopeName(waitgraph::Scope scope) {
  if (scope == waitgraph::Scope::kGraph) return "wait graph (events count whole)";
  return scope == waitgraph::Scope::kThread ? "the instances' own threads" : "critical path";
}

std::string Head(const MineFacts& facts, const MineTextOptions& options) {
  const Evidence& evidence = facts.evidence;
  const stackmine::Account& account = evidence.account;
  const auto automatic = static_cast<uint64_t>(
      std::count_if(evidence.traces.begin(), evidence.traces.end(),
                    [](const stackmine::TraceFacts& trace) { return trace.automatic; }));
  std::string title = facts.path + ": ";
  if (facts.is_corpus) title += Plural(evidence.traces.size(), "trace", "traces") + ", ";
  title += Plural(evidence.instances.size(), "instance", "instances") + ", " +
           FormatDuration(facts.total_ns()) + " in all";
  std::vector<Fact> rows;
  std::string instances = Plural(evidence.scenarios.size(), "scenario", "scenarios");
  if (automatic == evidence.traces.size() && automatic > 0) {
    instances += ", found automatically (spans between idle waits)";
  } else if (automatic > 0) {
    instances += ", found automatically in " + Plural(automatic, "trace", "traces");
  }
  rows.emplace_back("instances", instances);
  if (account.instances_left_out > 0) {
    rows.emplace_back("left out", Plural(account.instances_left_out, "instance", "instances") +
                                      " by --scenario or --slower-than, " +
                                      FormatDuration(account.instances_left_out_ns));
  }
  if (automatic > 0) {
    rows.emplace_back("idle", FormatDuration(account.idle_ns) + " of waiting for work; " +
                                  Plural(account.idle_threads, "thread", "threads") +
                                  " that only idle or never ran, " +
                                  FormatDuration(account.idle_threads_ns));
  }
  rows.emplace_back("area", ScopeName(evidence.scope) + ": " +
                                FormatCount(account.area.kept_events) + " of " +
                                Plural(account.area.events, "event", "events") + ", " +
                                FormatDuration(account.aoi_ns) + " of the time");
  if (account.summed_wait_ns > 0) {
    rows.emplace_back("sums", FormatDuration(account.summed_wait_ns) +
                                  " of short waits that the recorder left out, each sum under the "
                                  "stack of one of them");
  }
  if (account.waits_without_stack > 0) {
    rows.emplace_back("no stacks", Plural(account.waits_without_stack, "wait", "waits") +
                                       " have no stack: known by thread and waker instead");
  }
  return report::Heading(title, options.color) + report::Facts(rows, options.color);
}

std::string Skipped(const MineFacts& facts, const MineTextOptions& options) {
  std::string text;
  for (const auto& [what, row] : facts.evidence.diagnostics.rows()) {
    text += "  " + FormatCount(row.count) + " x " + PlainText(what) + "\n";
  }
  for (const std::string& error : facts.evidence.unreadable) {
    text += "  not read: " + PlainText(error) + "\n";
  }
  if (text.empty()) return text;
  std::string title = "Damaged or skipped";
  if (!facts.evidence.unreadable.empty()) {
    title += ": " + Plural(facts.evidence.unreadable.size(), "trace", "traces") + " not read";
  }
  return "\n" + report::Heading(title, options.color) + text;
}

std::string Roles(const MineFacts& facts, const MineTextOptions& options) {
  if (facts.evidence.roles.empty()) return {};
  std::vector<const waitgraph::Role*> roles;
  for (const auto& [key, role] : facts.evidence.roles) roles.push_back(&role);
  std::stable_sort(roles.begin(), roles.end(),
                   [](const auto* a, const auto* b) { return a->instance_ns > b->instance_ns; });
  Table table;
  table.Column("scenario found").Column("threads", Table::Align::kRight);
  table.Column("instances", Table::Align::kRight).Column("time", Table::Align::kRight);
  table.Column("idle", Table::Align::kRight).Column("idle wait", Table::Align::kLeft, true);
  for (size_t i = 0; i < roles.size() && i < kMaxRoles; ++i) {
    const waitgraph::Role& role = *roles[i];
    table.Row({role.scenario, FormatCount(role.threads), FormatCount(role.instances),
               FormatDuration(role.instance_ns), FormatDuration(role.idle_ns),
               role.idle_frame.empty() ? "never idles" : role.idle_frame});
  }
  std::string text = "\n" + table.ToText(options.width, options.color);
  if (roles.size() > kMaxRoles) {
    text +=
        report::Note("… and " + std::to_string(roles.size() - kMaxRoles) + " more", options.color);
  }
  return text;
}

std::string AccountTable(const MineFacts& facts, const MineTextOptions& options) {
  const stackmine::Account& account = facts.evidence.account;
  const int64_t total_ns = facts.total_ns();
  Table table;
  table.Column("").Column("time", Table::Align::kRight).Column("share", Table::Align::kRight);
  table.Column("");
  const auto row = [&](const char* name, int64_t ns, bool always = false) {
    if (ns == 0 && !always) return;
    table.Row(
        {name, FormatDuration(ns), FormatShare(ns, total_ns), report::ShareBar(ns, total_ns, 30)});
  };
  row("waiting", account.area.wait_ns);
  row("running, sampled", account.area.running_ns - account.not_sampled_ns, true);
  row("running, not sampled", account.not_sampled_ns);
  row("ready, not running", account.area.ready_ns, true);
  row("hardware", account.area.hardware_ns, true);
  row("[unattributed]", account.area.unattributed_ns, true);
  row("total", total_ns, true);
  const bool path = facts.evidence.scope == waitgraph::Scope::kCriticalPath;
  const std::string title = path
                                ? "Who owned the time of the instances, waits followed to their end"
                                : "Where the time of the instances is";
  return "\n" + report::Heading(title, options.color) + table.ToText(options.width, options.color);
}

// What a cluster's known state adds to its name.
std::string KnownMark(const MineFacts& facts, size_t at) {
  const stackmine::Signature* signature = facts.SignatureOf(at);
  if (signature == nullptr) return {};
  return std::string(Name(signature->status)) + ": " + PlainText(signature->name);
}

std::string Ranking(const MineFacts& facts, const MineTextOptions& options) {
  const stackmine::MineResult& result = facts.result;
  Table table;
  table.Column("#", Table::Align::kRight).Column("cluster").Column("kind");
  for (const char* header : {"cost", "time", "instances", "so far"}) {
    table.Column(header, Table::Align::kRight);
  }
  table.Column("what", Table::Align::kLeft, true);
  const size_t rows = std::min(result.clusters.size(), 2 * options.show);
  int64_t so_far_ns = 0;
  for (size_t i = 0; i < rows; ++i) {
    const Cluster& cluster = result.clusters[i];
    const Metrics& m = cluster.metrics;
    so_far_ns += cluster.gain_ns;
    std::string what = stackmine::ShortPlace(facts.evidence, cluster);
    if (const std::string mark = KnownMark(facts, i); !mark.empty())
      what = "[" + mark + "] " + what;
    table.Row({std::to_string(i + 1), cluster.id, stackmine::ShortKind(cluster),
               FormatDuration(m.cost_ns), FormatShare(m.time_ns, facts.total_ns()),
               FormatCount(m.instances), FormatShare(so_far_ns, facts.total_ns()), what});
  }
  std::string text = "\n" + report::Heading("Clusters, waits and CPU together", options.color) +
                     table.ToText(options.width, options.color);
  const int64_t others_ns = result.covered_ns - so_far_ns;
  text += report::Note(
      "in the rows above " + FormatDuration(so_far_ns) + ", in " +
          Plural(result.clusters.size() - rows, "other cluster", "other clusters") + " " +
          FormatDuration(others_ns) + ", in none " + FormatDuration(result.rest_ns) + ", total " +
          FormatDuration(so_far_ns + others_ns + result.rest_ns),
      options.color);
  return text;
}

// A module keeps its colour over runs and reports.
std::string ModuleText(std::string_view module, bool color) {
  const std::string plain = PlainText(module);
  if (!color || plain.empty()) return plain;
  constexpr std::array<int, 12> kColors = {31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96};
  uint32_t hash = 2166136261U;
  for (const char c : module) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  return "\033[" + std::to_string(kColors[hash % kColors.size()]) + "m" + plain + "\033[0m";
}

// Frames under their modules, one line for a run of frames of one module.
std::string FrameLines(const Evidence& evidence, const std::vector<FrameSymbol>& frames,
                       size_t indent, const MineTextOptions& options) {
  std::string text;
  const std::string margin(indent, ' ');
  size_t used = 0;
  std::string_view last;
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string_view module = evidence.stacks.Module(frames[i]);
    const std::string function = PlainText(evidence.stacks.Function(frames[i]));
    const size_t wide = report::CodePoints(function) + 3;
    if (i > 0 && module == last && used + wide <= options.width) {
      text += " > " + function;
      used += wide;
      continue;
    }
    if (i > 0) text += "\n";
    text += margin + ModuleText(module, options.color) + (module.empty() ? "" : "!") + function;
    used = indent + report::CodePoints(PlainText(module)) + wide;
    last = module;
  }
  return text.empty() ? text : text + "\n";
}

std::string Variants(const Evidence& evidence, const stackmine::ClusterSegment& segment,
                     const MineTextOptions& options) {
  size_t shortest = SIZE_MAX;
  size_t longest = 0;
  for (const auto& variant : segment.variants) {
    shortest = std::min(shortest, variant.size());
    longest = std::max(longest, variant.size());
  }
  std::string frames = shortest == longest
                           ? std::to_string(longest)
                           : std::to_string(shortest) + " to " + std::to_string(longest);
  std::string text = report::Note(
      "       ┆ " + Plural(segment.variants.size(), "way", "ways") + " of " + frames + " frames",
      options.color);
  if (!options.verbose) return text;
  for (size_t i = 0; i < segment.variants.size() && i < kMaxVariantsShown; ++i) {
    const auto& variant = segment.variants[i];
    text += variant.empty() ? std::string(9, ' ') + "(nothing)\n"
                            : FrameLines(evidence, variant, 9, options);
    text += report::Note("       ┆", options.color);
  }
  return text;
}

std::string Members(const Evidence& evidence, const Cluster& cluster,
                    const MineTextOptions& options) {
  std::string text;
  for (const stackmine::MinedPattern& pattern : cluster.patterns) {
    text += "     pattern, " + FormatDuration(pattern.cost_ns) + "\n";
    text += FrameLines(evidence, pattern.frames, 9, options);
  }
  return text;
}

std::string Impact(const MineFacts& facts, const Cluster& cluster) {
  const Metrics& m = cluster.metrics;
  const uint64_t instances = facts.evidence.instances.size();
  std::string text = "     cost " + FormatDuration(m.cost_ns) + ", " +
                     FormatShare(m.time_ns, facts.total_ns()) + " of the time; " +
                     Plural(m.events, "event", "events") + " of " + FormatDuration(m.average_ns()) +
                     " on average\n     in " + FormatCount(m.instances) + " of " +
                     Plural(instances, "instance", "instances");
  if (facts.is_corpus) {
    text += " and " + FormatCount(m.traces) + " of " +
            Plural(facts.evidence.traces.size(), "trace", "traces");
  }
  text += "; an instance loses p50 " + FormatDuration(m.p50_ns) + ", p95 " +
          FormatDuration(m.p95_ns) + ", at most " + FormatDuration(m.max_ns) + "\n";
  if (m.distinct_ns > 0 && m.cost_ns / kConvoyTenths > m.distinct_ns / 10) {
    text += "     distinct " + FormatDuration(m.distinct_ns) + ", attributed " +
            FormatDuration(m.cost_ns) + ": the same events delay more than one instance\n";
  }
  if (m.ready_ns > 0) {
    text += "     then ready but not running for " + FormatDuration(m.ready_ns) + "\n";
  }
  return text;
}

std::string Below(const Cluster& cluster) {
  if (cluster.kind == StackKind::kRun) return {};
  const stackmine::Composition& below = cluster.metrics.below;
  const int64_t sum_ns =
      below.running_ns + below.ready_ns + below.hardware_ns + below.unexplained_ns;
  std::string text;
  const auto part = [&](const char* name, int64_t ns) {
    if (ns > 0)
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + FormatShare(ns, sum_ns);
  };
  part("running", below.running_ns);
  part("ready", below.ready_ns);
  part("hardware", below.hardware_ns);
  part("unexplained", below.unexplained_ns);
  if (stackmine::IsDeviceAlone(cluster)) text += "; nothing but the device";
  return text.empty() ? text : "     behind it: " + text + "\n";
}

std::string Relations(const MineFacts& facts, size_t at) {
  const stackmine::MineResult& result = facts.result;
  const Cluster& cluster = result.clusters[at];
  std::string text;
  if (cluster.part_of != stackmine::kNoCluster) {
    const Cluster& around = result.clusters[cluster.part_of];
    text += "     part of " + around.id + " (#" + std::to_string(cluster.part_of + 1) +
            "): " + FormatShare(cluster.inside_ns, cluster.metrics.time_ns) +
            " of its time lies behind that one's waits\n";
  }
  for (size_t i = 0; i < result.clusters.size(); ++i) {
    const Cluster& inner = result.clusters[i];
    if (inner.part_of != at) continue;
    text += "     contains " + inner.id + " (#" + std::to_string(i + 1) +
            "): " + FormatDuration(inner.inside_ns) + ", " +
            PlainText(stackmine::Summarize(facts.evidence, inner)) + "\n";
  }
  return text;
}

std::string ClusterBlock(const MineFacts& facts, size_t at, const MineTextOptions& options) {
  const Evidence& evidence = facts.evidence;
  const Cluster& cluster = facts.result.clusters[at];
  const Metrics& m = cluster.metrics;
  std::string title = "#" + std::to_string(at + 1) + "  " + cluster.id + "  " +
                      PlainText(stackmine::Summarize(evidence, cluster));
  std::string text = "\n" + report::Styled(report::Style::kBold, title, options.color) + "\n";
  if (const std::string mark = KnownMark(facts, at); !mark.empty()) {
    text += "     signature " + mark + "\n";
  }
  if (!m.scenarios.empty()) {
    text += "     mostly in " + PlainText(evidence.scenarios[m.scenarios.front().first]) +
            (m.scenarios.size() > 1
                 ? " (" + FormatShare(m.scenarios.front().second, m.time_ns) + "), " +
                       Plural(m.scenarios.size(), "scenario", "scenarios") + " in all"
                 : "") +
            "\n";
  }
  text += Impact(facts, cluster) + Below(cluster) + Relations(facts, at);
  for (const stackmine::ClusterSegment& segment : cluster.segments) {
    text += segment.variants.empty() ? FrameLines(evidence, segment.shared, 7, options)
                                     : Variants(evidence, segment, options);
  }
  if (options.verbose) text += Members(evidence, cluster, options);
  for (const uint32_t instance : m.examples) {
    text += report::Note("     " + ShowCommand(facts, instance), options.color);
  }
  return text;
}

std::string Blocks(const MineFacts& facts, StackKind kind, std::string_view title,
                   const MineTextOptions& options) {
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < facts.result.clusters.size() && shown < options.show; ++i) {
    if (facts.result.clusters[i].kind != kind) continue;
    if (facts.IsIgnored(i)) continue;
    text += ClusterBlock(facts, i, options);
    ++shown;
  }
  return text.empty() ? text : "\n" + report::Heading(title, options.color) + text;
}

std::string NothingFound(const MineFacts& facts) {
  const stackmine::MineResult& result = facts.result;
  const int64_t most_ns = std::max(result.wait_ns, result.run_ns);
  if (facts.evidence.traces.empty()) {
    return facts.evidence.unreadable.empty() ? "\nThere are no traces.\n"
                                             : "\nNo trace could be read.\n";
  }
  if (facts.evidence.instances.empty()) {
    return "\nThere are no instances to look at; --auto, --scenario and --slower-than choose "
           "them.\n";
  }
  if (most_ns == 0) {
    return "\nNothing in the area of interest waits or runs; --with, --without and --class choose "
           "it.\n";
  }
  std::string text = "\nNo pattern costs " + FormatDuration(result.lambda_ns) +
                     ": all waits cost " + FormatDuration(result.wait_ns) + ", all runs " +
                     FormatDuration(result.run_ns) + ". Try --min-share 0.1%.\n";
  return text;
}

}  // namespace

std::string MineText(const MineFacts& facts, const MineTextOptions& options) {
  const stackmine::MineResult& result = facts.result;
  std::string text = Head(facts, options) + Skipped(facts, options) + Roles(facts, options);
  if (!facts.evidence.instances.empty()) text += AccountTable(facts, options);
  text += "\n" + Plural(result.patterns, "pattern", "patterns") + " of at least " +
          FormatDuration(result.lambda_ns) + " in " +
          Plural(result.distinct_stacks, "distinct stack", "distinct stacks") + ", " +
          Plural(result.clusters.size(), "cluster", "clusters") + "\n";
  if (result.truncated) {
    text += "Truncated: " + result.why +
            ". More patterns may exist, and some shown may not be "
            "maximal.\n";
  }
  if (result.runs_by_thread && result.run_ns > 0) {
    text += "No running stack was sampled: CPU time is grouped by thread.\n";
  }
  if (result.clusters.empty()) return text + NothingFound(facts);
  text += Ranking(facts, options);
  text += Blocks(facts, StackKind::kWait, "Waits", options);
  text += Blocks(facts, StackKind::kRun, "CPU", options);
  return text;
}

}  // namespace culprit::cli
