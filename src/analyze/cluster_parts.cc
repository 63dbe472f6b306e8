// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analyze/frame_names.h"
#include "analyze/part.h"
#include "base/json_writer.h"
#include "stackmine/summary.h"

namespace culprit::analyze {
namespace {

using stackmine::Cluster;
using stackmine::Metrics;

template <typename Write>
void Column(JsonWriter& json, std::string_view name, const Analysis& analysis, Write write) {
  json.Key(name).BeginArray();
  for (size_t i = 0; i < analysis.mined.clusters.size(); ++i) {
    write(i, analysis.mined.clusters[i]);
  }
  json.EndArray();
}

void TextColumns(const Analysis& analysis, JsonWriter& json) {
  const stackmine::Evidence& evidence = analysis.evidence;
  Column(json, "id", analysis, [&](size_t, const Cluster& c) { json.String(c.id); });
  Column(json, "kind", analysis, [&](size_t, const Cluster& c) { json.String(Name(c.kind)); });
  Column(json, "class", analysis,
         [&](size_t, const Cluster& c) { json.String(stackmine::ShortKind(c)); });
  Column(json, "summary", analysis,
         [&](size_t, const Cluster& c) { json.String(stackmine::Summarize(evidence, c)); });
  Column(json, "place", analysis,
         [&](size_t, const Cluster& c) { json.String(stackmine::ShortPlace(evidence, c)); });
  Column(json, "signature", analysis, [&](size_t i, const Cluster&) {
    const stackmine::Signature* signature = analysis.SignatureOf(i);
    json.String(signature == nullptr ? std::string_view() : signature->name);
  });
  Column(json, "status", analysis,
         [&](size_t i, const Cluster&) { json.String(analysis.StatusOf(i)); });
}

void NumberColumns(const Analysis& analysis, JsonWriter& json) {
  const auto number = [&](std::string_view name, auto get) {
    Column(json, name, analysis, [&](size_t, const Cluster& c) { json.Int(get(c.metrics)); });
  };
  number("cost_ns", [](const Metrics& m) { return m.cost_ns; });
  number("distinct_ns", [](const Metrics& m) { return m.distinct_ns; });
  number("time_ns", [](const Metrics& m) { return m.time_ns; });
  number("events", [](const Metrics& m) { return static_cast<int64_t>(m.events); });
  number("instances", [](const Metrics& m) { return static_cast<int64_t>(m.instances); });
  number("traces", [](const Metrics& m) { return static_cast<int64_t>(m.traces); });
  number("p50_ns", [](const Metrics& m) { return m.p50_ns; });
  number("p95_ns", [](const Metrics& m) { return m.p95_ns; });
  number("max_ns", [](const Metrics& m) { return m.max_ns; });
  Column(json, "gain_ns", analysis, [&](size_t, const Cluster& c) { json.Int(c.gain_ns); });
  Column(json, "part_of", analysis, [&](size_t, const Cluster& c) {
    json.Int(c.part_of == stackmine::kNoCluster ? -1 : static_cast<int64_t>(c.part_of));
  });
}

void WriteSegments(const Cluster& cluster, FrameNames& names, JsonWriter& json) {
  json.Key("segments").BeginArray();
  for (const stackmine::ClusterSegment& segment : cluster.segments) {
    json.BeginObject();
    if (!segment.shared.empty()) {
      names.WriteFrames(segment.shared, json.Key("shared"));
    } else {
      json.Key("variants").BeginArray();
      for (const auto& variant : segment.variants) names.WriteFrames(variant, json);
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray();
}

void WritePatterns(const Cluster& cluster, size_t most, FrameNames& names, JsonWriter& json) {
  const size_t shown = std::min(most, cluster.patterns.size());
  json.Key("patterns").BeginArray();
  for (size_t i = 0; i < shown; ++i) {
    json.BeginObject();
    names.WriteFrames(cluster.patterns[i].frames, json.Key("frames"));
    json.Field("cost_ns", cluster.patterns[i].cost_ns).EndObject();
  }
  json.EndArray().Field("patterns_left_out", cluster.patterns.size() - shown);
}

void WriteTraces(const stackmine::Evidence& evidence, const Metrics& metrics, size_t most,
                 JsonWriter& json) {
  std::vector<stackmine::TraceTime> traces(metrics.by_trace.begin(), metrics.by_trace.end());
  std::stable_sort(traces.begin(), traces.end(),
                   [](const auto& a, const auto& b) { return a.time_ns > b.time_ns; });
  const size_t shown = std::min(most, traces.size());
  json.Key("by_trace").BeginArray();
  for (size_t i = 0; i < shown; ++i) {
    json.BeginArray().String(evidence.traces[traces[i].trace].name);
    json.Int(traces[i].time_ns).EndArray();
  }
  json.EndArray().Field("traces_left_out", traces.size() - shown);
}

void WriteDetails(const Analysis& analysis, const Cluster& cluster, const PartOptions& options,
                  FrameNames& names, JsonWriter& json) {
  const stackmine::Evidence& evidence = analysis.evidence;
  const Metrics& m = cluster.metrics;
  json.BeginObject();
  WriteSegments(cluster, names, json);
  WritePatterns(cluster, options.patterns_per_cluster, names, json);
  json.Key("scenarios").BeginArray();
  for (const auto& [scenario, time_ns] : m.scenarios) {
    json.BeginObject().Field("name", std::string_view(evidence.scenarios[scenario]));
    json.Field("time_ns", time_ns).EndObject();
  }
  json.EndArray().Key("examples").BeginArray();
  for (const uint32_t instance : m.examples) json.String(evidence.InstanceName(instance));
  json.EndArray();
  WriteTraces(evidence, m, options.traces_per_cluster, json);
  json.Key("below").BeginObject().Field("running_ns", m.below.running_ns);
  json.Field("ready_ns", m.below.ready_ns).Field("hardware_ns", m.below.hardware_ns);
  json.Field("unexplained_ns", m.below.unexplained_ns).EndObject().EndObject();
}

}  // namespace

Part ClustersPart(const Analysis& analysis) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject();
  TextColumns(analysis, json);
  NumberColumns(analysis, json);
  json.EndObject();
  return {.name = "clusters", .json = json.Take()};
}

std::vector<Part> ClusterDetailParts(const Analysis& analysis, const PartOptions& options) {
  std::vector<Part> parts;
  const std::vector<Cluster>& clusters = analysis.mined.clusters;
  for (size_t first = 0; first < clusters.size(); first += options.clusters_per_part) {
    FrameNames names(analysis.evidence.stacks);
    JsonWriter json(JsonWriter::Style::kCompact);
    json.BeginObject().Field("first", first).Key("clusters").BeginArray();
    const size_t end = std::min(clusters.size(), first + options.clusters_per_part);
    for (size_t i = first; i < end; ++i) WriteDetails(analysis, clusters[i], options, names, json);
    json.EndArray();
    names.WriteNames(json);
    json.EndObject();
    parts.push_back({.name = "details-" + std::to_string(parts.size()), .json = json.Take()});
  }
  return parts;
}

}  // namespace culprit::analyze
