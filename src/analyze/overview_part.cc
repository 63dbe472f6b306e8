// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>

#include "analyze/part.h"
#include "analyze/time_shares.h"
#include "base/json_writer.h"

namespace culprit::analyze {
namespace {

// A curve of more points than this is drawn no better.
constexpr size_t kCurvePoints = 300;

void WriteCorpus(const Analysis& analysis, JsonWriter& json) {
  const stackmine::Evidence& evidence = analysis.evidence;
  uint64_t events = 0;
  for (const stackmine::TraceFacts& trace : evidence.traces) events += trace.events;
  json.Key("corpus").BeginObject().Field("name", std::string_view(analysis.path));
  json.Field("traces", evidence.traces.size()).Field("instances", evidence.instances.size());
  json.Field("events", events).Key("skipped").BeginArray();
  for (const auto& [what, row] : evidence.diagnostics.rows()) {
    json.BeginObject().Field("what", std::string_view(what)).Field("count", row.count).EndObject();
  }
  json.EndArray().Key("unreadable").BeginArray();
  for (const std::string& error : evidence.unreadable) json.String(error);
  json.EndArray().EndObject();
}

void WriteShares(std::string_view key, const std::vector<TimeShare>& shares, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const TimeShare& share : shares) {
    json.BeginObject().Field("key", share.key).Field("ns", share.ns).EndObject();
  }
  json.EndArray();
}

void WriteFindings(const Analysis& analysis, const std::vector<Finding>& findings,
                   JsonWriter& json) {
  json.Key("findings").BeginArray();
  for (const Finding& finding : findings) {
    const stackmine::Cluster& cluster = analysis.mined.clusters[finding.cluster];
    json.BeginObject().Field("cluster", std::string_view(cluster.id));
    json.Field("sentence", std::string_view(finding.sentence));
    json.Field("time_ns", cluster.metrics.time_ns);
    json.Field("status", analysis.StatusOf(finding.cluster));
    json.Field("command", std::string_view(finding.command)).EndObject();
  }
  json.EndArray();
}

void WriteCurve(std::string_view name, const stackmine::ReviewCurve& curve, JsonWriter& json) {
  const size_t size = curve.covered_ns.size();
  const size_t step = std::max<size_t>(1, size / kCurvePoints);
  json.BeginObject().Field("name", name).Key("points").BeginArray();
  for (size_t i = 0; i < size; i = i + step < size || i + 1 == size ? i + step : size - 1) {
    json.BeginArray().Uint(i + 1).Int(curve.covered_ns[i]).EndArray();
  }
  json.EndArray().EndObject();
}

void WriteScenarios(const Analysis& analysis, JsonWriter& json) {
  json.Key("scenarios").BeginArray();
  for (size_t i = 0; i < analysis.evidence.scenarios.size(); ++i) {
    const ScenarioSpeeds& speeds = analysis.speeds.scenarios[i];
    json.BeginObject().Field("name", std::string_view(analysis.evidence.scenarios[i]));
    json.Field("instances", speeds.instances).Field("total_ns", speeds.total_ns);
    json.Field("p50_ns", speeds.p50_ns).Field("p90_ns", speeds.p90_ns);
    json.Field("max_ns", speeds.max_ns).Key("histogram").BeginArray();
    for (const uint32_t count : speeds.histogram) json.Uint(count);
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

Part OverviewPart(const Analysis& analysis, const std::vector<Finding>& findings,
                  const PartOptions& options, const std::vector<std::string>& others) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("format", 1).Field("tool", "culprit " CULPRIT_VERSION);
  WriteCorpus(analysis, json);
  json.Key("time").BeginObject().Field("total_ns", analysis.total_ns());
  WriteShares("own", OwnShares(analysis), json);
  WriteShares("behind", BehindShares(analysis), json);
  json.EndObject();
  WriteFindings(analysis, findings, json);
  const stackmine::Review& review = analysis.review;
  json.Key("coverage").BeginObject().Field("coverable_ns", review.coverable_ns);
  json.Key("curves").BeginArray();
  WriteCurve("culprit", review.culprit, json);
  WriteCurve("random", review.random, json);
  WriteCurve("greedy by total delay", review.greedy_total, json);
  WriteCurve("greedy by longest delay", review.greedy_max, json);
  json.EndArray().EndObject();
  WriteScenarios(analysis, json);
  json.Field("clusters", analysis.mined.clusters.size());
  json.Field("detail_size", options.clusters_per_part).Key("parts").BeginArray();
  for (const std::string& name : others) json.String(name);
  json.EndArray().EndObject();
  return {.name = "overview", .json = json.Take()};
}

std::vector<Part> MakeParts(const Analysis& analysis, const PartOptions& options,
                            const Additions& additions) {
  std::vector<Part> parts(1);
  parts.push_back(ClustersPart(analysis));
  const auto add = [&](std::vector<Part> more) {
    for (Part& part : more) parts.push_back(std::move(part));
  };
  add(ClusterDetailParts(analysis, options));
  add(FlameParts(analysis, options, additions.before));
  add(ChainParts(analysis, options));
  add(ContrastParts(analysis, options));
  if (!analysis.impact.components.empty()) parts.push_back(ImpactPart(analysis));
  add(InstanceParts(analysis, options));
  parts.push_back(SignaturesPart(analysis));
  add(additions.parts);
  std::vector<std::string> names;
  for (size_t i = 1; i < parts.size(); ++i) names.push_back(parts[i].name);
  parts.front() = OverviewPart(analysis, MakeFindings(analysis, options.findings), options, names);
  return parts;
}

}  // namespace culprit::analyze
