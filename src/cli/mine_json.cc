// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/mine_facts.h"
#include "stackmine/summary.h"

namespace culprit::cli {
namespace {

using stackmine::Cluster;
using stackmine::Evidence;
using stackmine::FrameSymbol;
using stackmine::Metrics;

void Frames(const Evidence& evidence, const std::vector<FrameSymbol>& frames, JsonWriter& json) {
  json.BeginArray();
  for (const FrameSymbol frame : frames) json.String(evidence.stacks.FrameName(frame));
  json.EndArray();
}

void WriteMetrics(const Metrics& m, JsonWriter& json) {
  json.Field("cost_ns", m.cost_ns).Field("distinct_ns", m.distinct_ns).Field("time_ns", m.time_ns);
  json.Field("traces", m.traces).Field("events", m.events).Field("avg_ns", m.average_ns());
  json.Field("p50_ns", m.p50_ns).Field("p95_ns", m.p95_ns).Field("max_ns", m.max_ns);
  json.Field("instances", m.instances).Field("ready_after_ns", m.ready_ns);
  json.Key("below").BeginObject();
  json.Field("running_ns", m.below.running_ns).Field("ready_ns", m.below.ready_ns);
  json.Field("hardware_ns", m.below.hardware_ns).Field("unexplained_ns", m.below.unexplained_ns);
  json.EndObject();
}

void WriteParts(const Evidence& evidence, const Cluster& cluster, JsonWriter& json) {
  json.Key("common");
  Frames(evidence, cluster.common, json);
  json.Key("segments").BeginArray();
  for (const stackmine::ClusterSegment& segment : cluster.segments) {
    json.BeginObject();
    if (!segment.shared.empty()) {
      json.Key("shared");
      Frames(evidence, segment.shared, json);
    } else {
      json.Key("variants").BeginArray();
      for (const auto& variant : segment.variants) Frames(evidence, variant, json);
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray();
  if (cluster.anchor) {
    json.Field("anchor", evidence.stacks.FrameName(cluster.anchor->frame)).Key("closure");
    Frames(evidence, cluster.anchor->closure, json);
  }
  json.Key("patterns").BeginArray();
  for (const stackmine::MinedPattern& pattern : cluster.patterns) {
    json.BeginObject().Key("frames");
    Frames(evidence, pattern.frames, json);
    json.Field("cost_ns", pattern.cost_ns).EndObject();
  }
  json.EndArray();
}

void WriteCluster(const MineFacts& facts, size_t at, JsonWriter& json) {
  const Evidence& evidence = facts.evidence;
  const Cluster& cluster = facts.result.clusters[at];
  json.BeginObject().Field("id", std::string_view(cluster.id)).Field("kind", Name(cluster.kind));
  if (cluster.kind == stackmine::StackKind::kWait) {
    json.Field("class", waitgraph::Name(stackmine::MainClass(cluster.metrics)));
  }
  json.Field("summary", std::string_view(stackmine::Summarize(evidence, cluster)));
  WriteMetrics(cluster.metrics, json);
  json.Field("own_ns", cluster.own_ns).Field("impact", cluster.impact);
  json.Field("device_alone", stackmine::IsDeviceAlone(cluster));
  json.Field("gain_ns", cluster.gain_ns);
  if (cluster.part_of != stackmine::kNoCluster) {
    json.Field("part_of", std::string_view(facts.result.clusters[cluster.part_of].id));
    json.Field("inside_ns", cluster.inside_ns);
  }
  if (const stackmine::Signature* signature = facts.SignatureOf(at)) {
    json.Field("signature", std::string_view(signature->name));
    json.Field("status", Name(signature->status));
  }
  json.Key("scenarios").BeginArray();
  for (const auto& [scenario, time_ns] : cluster.metrics.scenarios) {
    json.BeginObject().Field("name", std::string_view(evidence.scenarios[scenario]));
    json.Field("time_ns", time_ns).EndObject();
  }
  json.EndArray();
  json.Key("examples").BeginArray();
  for (const uint32_t instance : cluster.metrics.examples) {
    json.String(evidence.InstanceName(instance));
  }
  json.EndArray();
  WriteParts(evidence, cluster, json);
  json.EndObject();
}

void WriteAccount(const MineFacts& facts, JsonWriter& json) {
  const stackmine::Account& account = facts.evidence.account;
  json.Key("account").BeginObject();
  json.Field("running_ns", account.area.running_ns - account.not_sampled_ns);
  json.Field("not_sampled_ns", account.not_sampled_ns).Field("ready_ns", account.area.ready_ns);
  json.Field("hardware_ns", account.area.hardware_ns).Field("wait_ns", account.area.wait_ns);
  json.Field("unattributed_ns", account.area.unattributed_ns);
  json.Field("events", account.area.events).Field("kept_events", account.area.kept_events);
  json.Field("summed_wait_ns", account.summed_wait_ns);
  json.Field("waits_without_stack", account.waits_without_stack);
  json.Field("instances_left_out", account.instances_left_out);
  json.Field("instances_left_out_ns", account.instances_left_out_ns);
  json.Field("idle_ns", account.idle_ns).Field("idle_threads", account.idle_threads);
  json.Field("idle_threads_ns", account.idle_threads_ns).EndObject();
  json.Key("roles").BeginArray();
  for (const auto& [key, role] : facts.evidence.roles) {
    json.BeginObject().Field("scenario", std::string_view(role.scenario));
    json.Field("loop_frame", std::string_view(role.loop_frame));
    json.Field("idle_frame", std::string_view(role.idle_frame)).Field("threads", role.threads);
    json.Field("instances", role.instances).Field("instance_ns", role.instance_ns);
    json.Field("idle_ns", role.idle_ns).EndObject();
  }
  json.EndArray();
}

void WriteSkipped(const MineFacts& facts, JsonWriter& json) {
  json.Key("skipped").BeginArray();
  for (const auto& [what, row] : facts.evidence.diagnostics.rows()) {
    json.BeginObject().Field("what", std::string_view(what)).Field("count", row.count).EndObject();
  }
  json.EndArray().Key("unreadable").BeginArray();
  for (const std::string& error : facts.evidence.unreadable) json.String(error);
  json.EndArray();
}

}  // namespace

std::string MineJson(const MineFacts& facts) {
  const stackmine::MineResult& result = facts.result;
  JsonWriter json;
  json.BeginObject();
  json.Field("path", std::string_view(facts.path));
  json.Field("traces", facts.evidence.traces.size());
  json.Field("instances", facts.evidence.instances.size());
  json.Field("total_ns", facts.total_ns()).Field("aoi_ns", facts.evidence.account.aoi_ns);
  json.Field("unattributed_ns", facts.evidence.account.area.unattributed_ns);
  json.Field("lambda_ns", result.lambda_ns).Field("truncated", result.truncated);
  if (result.truncated) json.Field("why_truncated", std::string_view(result.why));
  json.Field("wait_ns", result.wait_ns).Field("run_ns", result.run_ns);
  json.Field("runs_by_thread", result.runs_by_thread);
  json.Field("distinct_stacks", result.distinct_stacks).Field("patterns", result.patterns);
  json.Field("covered_ns", result.covered_ns).Field("rest_ns", result.rest_ns);
  WriteAccount(facts, json);
  json.Key("clusters").BeginArray();
  for (size_t i = 0; i < result.clusters.size(); ++i) WriteCluster(facts, i, json);
  json.EndArray();
  WriteSkipped(facts, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
