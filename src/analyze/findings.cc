// SPDX-License-Identifier: Apache-2.0
#include "analyze/findings.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "stackmine/reduce.h"
#include "stackmine/summary.h"
#include "stackmine/telling_frames.h"

namespace culprit::analyze {
namespace {

using stackmine::Cluster;
using stackmine::NodeIndex;
using stackmine::PathKind;
using stackmine::PathNode;

// In the order of WaitClass.
constexpr std::array<std::string_view, waitgraph::kWaitClasses> kFor = {"",
                                                                        " for a lock",
                                                                        " for the disk",
                                                                        " for a page fault",
                                                                        " for the network",
                                                                        " for another process",
                                                                        " to be asked",
                                                                        " for a timer",
                                                                        " for a child process",
                                                                        " for memory",
                                                                        " for a signal"};

constexpr size_t kBehindShown = 2;
constexpr int64_t kMainScenarioTenths = 9;
constexpr int64_t kBehindTenth = 10;  // smaller shares are not worth a word

// Who owned the time below a wait: the function that ran, the device, nobody.
std::string OwnerOf(const stackmine::Evidence& evidence, const PathNode& node) {
  if (node.kind == PathKind::kReady || node.kind == PathKind::kPreempted) return "no free CPU";
  if (node.stack == stackmine::kNoStack) return "unknown";
  const auto frame = stackmine::TellingFrames(evidence.stacks, node.stack, 1).front();
  if (node.kind == PathKind::kHardware || node.kind == PathKind::kNotSampled) {
    // "Disk#": devices and threads of one role, whatever their number.
    std::string name(evidence.stacks.Function(frame));
    name.erase(std::remove(name.begin(), name.end(), '#'), name.end());
    return name;
  }
  return std::string(evidence.stacks.FrameName(frame));
}

// The owners of the time below the cluster's waits, most first.
std::vector<std::pair<int64_t, std::string>> Behind(const Analysis& analysis,
                                                    const Cluster& cluster, int64_t& sum_ns) {
  const stackmine::Cover& cover = analysis.mined.cover;
  const LargeVector<PathNode>& nodes = analysis.evidence.forest.nodes();
  std::map<std::string, int64_t> owners;
  for (NodeIndex n = 0; n < nodes.size(); ++n) {
    if (nodes[n].kind == PathKind::kWait && cover.node_own_ns[n] == 0) continue;
    if (!cover.Has(cover.above[n], cluster.label)) continue;
    const bool wait = nodes[n].kind == PathKind::kWait;
    owners[wait ? "unexplained" : OwnerOf(analysis.evidence, nodes[n])] += cover.node_own_ns[n];
    sum_ns += cover.node_own_ns[n];
  }
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto& [name, ns] : owners) rows.emplace_back(ns, name);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return rows;
}

std::string BehindText(const Analysis& analysis, const Cluster& cluster) {
  int64_t sum_ns = 0;
  const auto rows = Behind(analysis, cluster, sum_ns);
  std::string text;
  for (size_t i = 0; i < rows.size() && i < kBehindShown; ++i) {
    if (rows[i].first < sum_ns / kBehindTenth) break;
    text += (text.empty() ? "; behind it " : ", ") + rows[i].second + " " +
            FormatShare(rows[i].first, sum_ns);
  }
  return text;
}

std::string What(const Analysis& analysis, const Cluster& cluster) {
  const stackmine::StackTable& stacks = analysis.evidence.stacks;
  const std::string site(stacks.FrameName(cluster.site));
  const std::string key(stacks.FrameName(cluster.key));
  const std::string lost = FormatDuration(cluster.metrics.p50_ns);
  if (stackmine::IsPseudoFrame(site)) {
    return "a thread " + stackmine::Summarize(analysis.evidence, cluster) + ", " + lost;
  }
  if (cluster.kind == stackmine::StackKind::kRun) {
    const std::string who = key == site ? key + " runs " : key + " runs " + site + " ";
    return who + lost;
  }
  const auto wait_class = static_cast<size_t>(stackmine::MainClass(cluster.metrics));
  std::string text = key + " waits " + lost + std::string(kFor[wait_class]);
  if (site != key) text += " at " + site;
  return text + BehindText(analysis, cluster);
}

// Instances of the scenario in which the cluster has time.
uint64_t Affected(const Analysis& analysis, const Cluster& cluster, uint32_t scenario) {
  const stackmine::Evidence& evidence = analysis.evidence;
  const stackmine::Cover& cover = analysis.mined.cover;
  uint64_t affected = 0;
  RowCursor rows(evidence.rows);
  for (size_t i = 0; i < evidence.instances.size(); ++i) {
    if (evidence.instances[i].scenario != scenario) continue;
    const uint64_t end = evidence.instances[i].rows_end;
    for (const stackmine::PathRow& row : rows.Read(evidence.rows_begin(i), end)) {
      if (!cover.Has(cover.own[row.node], cluster.label)) continue;
      ++affected;
      break;
    }
  }
  return affected;
}

// "In 12 % of TabCreate, "; of all instances where no scenario has most of it.
std::string HowMany(const Analysis& analysis, const Cluster& cluster) {
  const stackmine::Metrics& m = cluster.metrics;
  if (m.scenarios.empty()) return {};
  const auto& [scenario, time_ns] = m.scenarios.front();
  if (time_ns < m.time_ns / 10 * kMainScenarioTenths) {
    return "In " +
           FormatShare(static_cast<int64_t>(m.instances),
                       static_cast<int64_t>(analysis.evidence.instances.size())) +
           " of all instances, ";
  }
  const uint64_t affected = Affected(analysis, cluster, scenario);
  return "In " +
         FormatShare(static_cast<int64_t>(affected),
                     static_cast<int64_t>(analysis.speeds.scenarios[scenario].instances)) +
         " of " + analysis.evidence.scenarios[scenario] + ", ";
}

std::string Sentence(const Analysis& analysis, const Cluster& cluster) {
  const stackmine::Metrics& m = cluster.metrics;
  std::string text =
      HowMany(analysis, cluster) + What(analysis, cluster) + "; " + FormatDuration(m.time_ns);
  if (analysis.is_corpus) {
    text += " in " + FormatCount(m.traces) + (m.traces == 1 ? " trace" : " traces");
  }
  return text;
}

}  // namespace

std::vector<Finding> MakeFindings(const Analysis& analysis, size_t most) {
  std::vector<Finding> findings;
  std::vector<bool> chosen(analysis.mined.clusters.size());
  for (uint32_t i = 0; i < analysis.mined.clusters.size() && findings.size() < most; ++i) {
    const Cluster& cluster = analysis.mined.clusters[i];
    if (analysis.StatusOf(i) == Name(stackmine::SignatureStatus::kIgnored)) continue;
    if (cluster.part_of != stackmine::kNoCluster && chosen[cluster.part_of]) continue;
    chosen[i] = true;
    Finding finding{.cluster = i, .sentence = Sentence(analysis, cluster), .command = {}};
    if (!cluster.metrics.examples.empty()) {
      finding.command = analysis.ShowCommand(cluster.metrics.examples.front());
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace culprit::analyze
