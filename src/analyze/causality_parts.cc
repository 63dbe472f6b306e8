// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analyze/part.h"
#include "base/json_writer.h"

namespace culprit::analyze {
namespace {

void WriteNames(std::string_view key, const std::vector<std::string>& names, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const std::string& name : names) json.String(name);
  json.EndArray();
}

void WriteImpactRow(const causality::ImpactRow& row, JsonWriter& json) {
  json.BeginObject().Field("component", std::string_view(row.component));
  json.Field("d_scn_ns", row.d_scn_ns).Field("d_wait_ns", row.d_wait_ns);
  json.Field("d_run_ns", row.d_run_ns).Field("d_waitdist_ns", row.d_waitdist_ns);
  json.Field("ia_wait", row.ia_wait).Field("ia_run", row.ia_run).Field("ia_opt", row.ia_opt);
  json.EndObject();
}

void WriteContrastPattern(const causality::ContrastPattern& pattern, JsonWriter& json) {
  json.BeginObject();
  WriteNames("wait", pattern.tuple.wait, json);
  WriteNames("unwait", pattern.tuple.unwait, json);
  WriteNames("running", pattern.tuple.running, json);
  json.Field("cost_ns", pattern.cost_ns).Field("count", pattern.count);
  json.Field("instances", pattern.instances).Field("traces", pattern.traces);
  json.Field("slow_only", pattern.slow_only);
  json.Key("ratio");
  if (pattern.ratio) {
    json.Double(*pattern.ratio);
  } else {
    json.Null();
  }
  json.Field("p_value", pattern.p_value).Key("examples").BeginArray();
  for (const causality::Example& example : pattern.examples) json.String(example.instance);
  json.EndArray().EndObject();
}

Part ContrastPart(const ScenarioContrast& contrast, size_t most) {
  const causality::ContrastResult& result = contrast.result;
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("scenario", std::string_view(result.scenario));
  json.Field("fast_below_ns", result.classes.t_fast_ns);
  json.Field("slow_above_ns", result.classes.t_slow_ns);
  json.Field("fast_instances", result.classes.fast.size());
  json.Field("slow_instances", result.classes.slow.size());
  json.Field("itc", result.itc).Field("ttc", result.ttc).Field("pruned_ns", result.pruned_ns);
  const size_t shown = std::min(most, result.patterns.size());
  json.Field("patterns_left_out", result.patterns.size() - shown).Key("patterns").BeginArray();
  for (size_t i = 0; i < shown; ++i) WriteContrastPattern(result.patterns[i], json);
  json.EndArray().EndObject();
  return {.name = "contrast-" + std::to_string(contrast.scenario), .json = json.Take()};
}

}  // namespace

Part ImpactPart(const Analysis& analysis) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("total_ns", analysis.impact.whole.d_scn_ns).Key("rows").BeginArray();
  for (const causality::ImpactRow& row : analysis.impact.components) WriteImpactRow(row, json);
  json.EndArray().EndObject();
  return {.name = "impact", .json = json.Take()};
}

std::vector<Part> ContrastParts(const Analysis& analysis, const PartOptions& options) {
  std::vector<Part> parts;
  for (const ScenarioContrast& contrast : analysis.contrasts) {
    parts.push_back(ContrastPart(contrast, options.contrast_patterns));
  }
  return parts;
}

}  // namespace culprit::analyze
