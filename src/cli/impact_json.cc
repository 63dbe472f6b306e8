// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/impact_report.h"

namespace culprit::cli {
namespace {

using causality::ImpactResult;
using causality::ImpactRow;
using causality::Interval;
using causality::PropagatedWait;

void WriteInterval(std::string_view key, const std::optional<Interval>& interval,
                   JsonWriter& json) {
  json.Key(key);
  if (!interval) {
    json.Null();
    return;
  }
  json.BeginArray().Double(interval->low).Double(interval->high).EndArray();
}

void WriteRow(const ImpactRow& row, JsonWriter& json) {
  json.BeginObject().Field("component", std::string_view(row.component));
  json.Field("scenario", std::string_view(row.scenario));
  json.Field("instances", row.instances).Field("affected_instances", row.affected_instances);
  json.Field("traces", row.traces).Field("waits", row.waits);
  json.Field("distinct_waits", row.distinct_waits);
  json.Field("d_scn_ns", row.d_scn_ns).Field("d_wait_ns", row.d_wait_ns);
  json.Field("d_run_ns", row.d_run_ns).Field("d_waitdist_ns", row.d_waitdist_ns);
  json.Field("ia_wait", row.ia_wait).Field("ia_run", row.ia_run).Field("ia_opt", row.ia_opt);
  json.Field("propagation", row.propagation);
  WriteInterval("ia_wait_interval", row.ia_wait_interval, json);
  WriteInterval("ia_run_interval", row.ia_run_interval, json);
  WriteInterval("ia_opt_interval", row.ia_opt_interval, json);
  json.EndObject();
}

void WriteRows(std::string_view key, const std::vector<ImpactRow>& rows, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const ImpactRow& row : rows) WriteRow(row, json);
  json.EndArray();
}

void WritePropagated(const PropagatedWait& wait, JsonWriter& json) {
  json.BeginObject().Field("trace", std::string_view(wait.trace));
  json.Field("thread", std::string_view(wait.thread)).Field("waker", std::string_view(wait.waker));
  json.Field("wait", std::string_view(wait.signature));
  json.Field("unwait", std::string_view(wait.unwait_signature));
  json.Field("begin_ns", wait.begin_ns).Field("dur_ns", wait.dur_ns);
  json.Field("instances", wait.instances).Field("charged_ns", wait.charged_ns);
  json.Field("distinct_ns", wait.distinct_ns).Key("delayed").BeginArray();
  for (const uint32_t index : wait.instance_indexes) {
    json.String(wait.trace + ":" + std::to_string(index));
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string ImpactJson(const CausalityInput& input, const ImpactResult& result) {
  JsonWriter json;
  json.BeginObject();
  WriteCausalityHead(input, json);
  json.Field("confidence", result.confidence).Field("resamples", result.resamples);
  json.Field("seed", result.seed);
  json.Key("rows").BeginArray();
  WriteRow(result.whole, json);
  for (const ImpactRow& row : result.components) WriteRow(row, json);
  json.EndArray();
  WriteRows("scenarios", result.scenarios, json);
  WriteRows("cells", result.cells, json);
  json.Key("propagated").BeginArray();
  for (const PropagatedWait& wait : result.propagated) WritePropagated(wait, json);
  json.EndArray();
  WriteCausalitySkipped(input, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
