// SPDX-License-Identifier: Apache-2.0
#include "analyze/verdict.h"

#include <algorithm>

#include "analyze/time_shares.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "report/block.h"
#include "report/plain_text.h"

namespace culprit::analyze {
namespace {

using report::PlainText;

// "  text", broken at spaces to the width, further lines indented alike.
std::vector<std::string> Fill(const std::string& text, const std::string& first,
                              const std::string& rest, size_t width) {
  std::vector<std::string> lines;
  std::string line = first;
  size_t begin = 0;
  bool fresh = true;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!fresh && report::CodePoints(line) + 1 + report::CodePoints(word) > width) {
      lines.push_back(line);
      line = rest;
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
    begin = end + 1;
  }
  lines.push_back(line);
  return lines;
}

std::string Number(uint64_t count, const char* one, const char* many) {
  return FormatCount(count) + " " + (count == 1 ? one : many);
}

std::string WhatWasAnalysed(const Analysis& analysis) {
  const stackmine::Evidence& evidence = analysis.evidence;
  uint64_t events = 0;
  for (const stackmine::TraceFacts& trace : evidence.traces) events += trace.events;
  std::string text = PlainText(analysis.path) + ": " +
                     Number(evidence.traces.size(), "trace", "traces") + ", " +
                     Number(evidence.instances.size(), "instance", "instances") + " of " +
                     Number(evidence.scenarios.size(), "scenario", "scenarios") + ", " +
                     Number(events, "event", "events") + ", " +
                     FormatDuration(analysis.total_ns()) + " of instances' time";
  uint64_t skipped = 0;
  for (const auto& [what, row] : evidence.diagnostics.rows()) skipped += row.count;
  if (skipped > 0) text += "; skipped " + Number(skipped, "record", "records");
  if (!evidence.unreadable.empty()) {
    text += "; " + Number(evidence.unreadable.size(), "trace", "traces") + " not read";
  }
  return text;
}

std::string ShareName(std::string_view key) {
  if (key == "running" || key == "ready" || key == "hardware" || key == "unattributed" ||
      key == "waiting") {
    return std::string(key);
  }
  return "waiting: " + std::string(key);
}

std::string SharesText(const std::vector<TimeShare>& shares, int64_t total_ns) {
  std::vector<TimeShare> sorted = shares;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TimeShare& a, const TimeShare& b) { return a.ns > b.ns; });
  std::string text;
  for (const TimeShare& share : sorted) {
    text +=
        (text.empty() ? "" : ", ") + ShareName(share.key) + " " + FormatShare(share.ns, total_ns);
  }
  return text;
}

std::string WhyNoFinding(const Analysis& analysis) {
  const stackmine::Evidence& evidence = analysis.evidence;
  if (evidence.traces.empty() && !evidence.unreadable.empty()) {
    return "Nothing could be analysed: " + PlainText(evidence.unreadable.front());
  }
  if (evidence.traces.empty()) return "There is no trace: culprit import or record makes some.";
  if (evidence.instances.empty()) {
    return "There is no instance to look at: --auto looks for some, import --instances marks them.";
  }
  return "No behaviour costs enough to be named.";
}

}  // namespace

std::string VerdictText(const Analysis& analysis, const std::vector<Finding>& findings,
                        const VerdictOptions& options) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text, const std::string& first, const std::string& rest) {
    for (std::string& line : Fill(text, first, rest, options.width)) {
      lines.push_back(std::move(line));
    }
  };
  add(WhatWasAnalysed(analysis), "", "  ");
  const int64_t total_ns = analysis.total_ns();
  if (total_ns > 0) {
    add(SharesText(OwnShares(analysis), total_ns), "  themselves  ", "              ");
    add(SharesText(BehindShares(analysis), total_ns), "  behind it   ", "              ");
  }
  size_t shown = 0;
  for (const Finding& finding : findings) {
    const std::string number = std::to_string(shown + 1);
    const std::string status(analysis.StatusOf(finding.cluster));
    const std::vector<std::string> block = Fill(PlainText(finding.sentence) + "; " + status,
                                                " " + number + "  ", "    ", options.width);
    if (lines.size() + block.size() + 2 > kVerdictLines) break;
    lines.insert(lines.end(), block.begin(), block.end());
    if (!finding.command.empty()) {
      lines.push_back(
          report::Styled(report::Style::kDim, "    " + PlainText(finding.command), options.color));
    }
    ++shown;
  }
  if (findings.empty()) lines.push_back("  " + WhyNoFinding(analysis));
  lines.front() = report::Styled(report::Style::kBold, lines.front(), options.color);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string VerdictJson(const Analysis& analysis, const std::vector<Finding>& findings) {
  const stackmine::Evidence& evidence = analysis.evidence;
  JsonWriter json;
  json.BeginObject().Field("path", std::string_view(analysis.path));
  json.Field("traces", evidence.traces.size()).Field("instances", evidence.instances.size());
  json.Field("total_ns", analysis.total_ns());
  const auto shares = [&](const char* key, const std::vector<TimeShare>& list) {
    json.Key(key).BeginObject();
    for (const TimeShare& share : list) json.Field(share.key, share.ns);
    json.EndObject();
  };
  shares("own_ns", OwnShares(analysis));
  shares("behind_ns", BehindShares(analysis));
  json.Key("findings").BeginArray();
  for (const Finding& finding : findings) {
    const stackmine::Cluster& cluster = analysis.mined.clusters[finding.cluster];
    json.BeginObject().Field("cluster", std::string_view(cluster.id));
    json.Field("kind", Name(cluster.kind)).Field("status", analysis.StatusOf(finding.cluster));
    json.Field("sentence", std::string_view(finding.sentence));
    json.Field("time_ns", cluster.metrics.time_ns).Field("cost_ns", cluster.metrics.cost_ns);
    json.Field("instances", cluster.metrics.instances).Field("traces", cluster.metrics.traces);
    json.Field("command", std::string_view(finding.command)).EndObject();
  }
  json.EndArray().Key("unreadable").BeginArray();
  for (const std::string& error : evidence.unreadable) json.String(error);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::analyze
