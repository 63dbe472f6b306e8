// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/causality_text.h"
#include "cli/contrast_report.h"

namespace culprit::cli {
namespace {

using causality::ContrastPattern;
using causality::ContrastResult;

void WriteRatio(std::string_view key, const std::optional<double>& ratio, JsonWriter& json) {
  json.Key(key);
  ratio ? json.Double(*ratio) : json.Null();
}

void WriteDurations(const causality::DurationFacts& facts, JsonWriter& json) {
  json.Key("durations").BeginObject().Field("count", facts.count);
  json.Field("sum_ns", facts.sum_ns).Field("min_ns", facts.min_ns).Field("p10_ns", facts.p10_ns);
  json.Field("p25_ns", facts.p25_ns).Field("p50_ns", facts.p50_ns).Field("p75_ns", facts.p75_ns);
  json.Field("p90_ns", facts.p90_ns).Field("p95_ns", facts.p95_ns).Field("p99_ns", facts.p99_ns);
  json.Field("max_ns", facts.max_ns).EndObject();
}

void WritePattern(const ContrastPattern& pattern, JsonWriter& json) {
  json.BeginObject();
  WriteTuple(pattern.tuple, json);
  json.Field("cost_ns", pattern.cost_ns).Field("count", pattern.count);
  json.Field("average_ns", pattern.average_ns());
  json.Field("instances", pattern.instances).Field("traces", pattern.traces);
  json.Field("slow_only", pattern.slow_only);
  WriteRatio("ratio", pattern.ratio, json);
  json.Field("p_value", pattern.p_value).Field("p_single", pattern.p_single);
  json.Field("high_impact", pattern.high_impact);
  json.Field("most_in_instance_ns", pattern.most_in_instance_ns);
  json.Field("paths", pattern.paths).Field("fast_instances", pattern.fast_instances);
  json.Field("fast_cost_ns", pattern.fast_cost_ns).Field("fast_count", pattern.fast_count);
  WriteExamples(pattern.examples, json);
  json.Key("why").BeginObject();
  WriteTuple(pattern.why.tuple, json);
  json.Field("slow_only", pattern.why.costs.slow_only());
  WriteRatio("ratio", pattern.why.costs.Ratio(), json);
  json.EndObject().EndObject();
}

void WriteCoverage(const ContrastResult& result, JsonWriter& json) {
  json.Key("coverage").BeginArray();
  for (const causality::RankCoverage& row : result.coverage) {
    json.BeginObject().Field("top_percent", row.percent).Field("patterns", row.patterns);
    json.Field("cost_ns", row.cost_ns).Field("share", row.share).EndObject();
  }
  json.EndArray();
}

// The fields of one scenario, into an object that is open.
void WriteContrast(const ContrastResult& result, JsonWriter& json) {
  json.Field("scenario", std::string_view(result.scenario));
  json.Field("t_fast_ns", result.classes.t_fast_ns).Field("t_slow_ns", result.classes.t_slow_ns);
  json.Field("thresholds_chosen", result.classes.chosen);
  json.Field("fast_instances", result.classes.fast.size());
  json.Field("slow_instances", result.classes.slow.size());
  json.Field("between_instances", result.classes.between);
  WriteDurations(result.classes.durations, json);
  json.Field("slow_ns", result.slow.instances_ns).Field("fast_ns", result.fast.instances_ns);
  json.Field("component_ns", result.component_ns).Field("component_share", result.component_share);
  json.Field("patterns_ns", result.patterns_ns).Field("impactful_ns", result.impactful_ns);
  json.Field("itc", result.itc).Field("ttc", result.ttc).Field("pruned_ns", result.pruned_ns);
  json.Field("exception_patterns", result.exception_patterns);
  json.Field("exception_ns", result.exception_ns).Key("unused_exceptions").BeginArray();
  for (const std::string& glob : result.unused_exceptions) json.String(glob);
  json.EndArray();
  json.Field("slow_paths", result.slow_paths).Field("fast_paths", result.fast_paths);
  json.Field("meta_patterns", result.meta_patterns).Field("contrast_metas", result.contrasts);
  json.Field("max_segment", result.max_segment).Field("rank", Name(result.rank));
  json.Field("deals", result.significance.deals).Field("seed", result.significance.seed);
  json.Field("correction", std::string_view(result.correction));
  WriteCoverage(result, json);
  json.Key("patterns").BeginArray();
  for (const ContrastPattern& pattern : result.patterns) WritePattern(pattern, json);
  json.EndArray();
}

}  // namespace

std::string ContrastJson(const CausalityInput& input, const ContrastFacts& facts) {
  JsonWriter json;
  json.BeginObject();
  WriteCausalityHead(input, json);
  if (facts.results.size() == 1 && facts.left_out.empty()) {
    WriteContrast(facts.results.front(), json);
  } else {
    json.Key("contrasts").BeginArray();
    for (const ContrastResult& result : facts.results) {
      json.BeginObject();
      WriteContrast(result, json);
      json.EndObject();
    }
    json.EndArray().Key("left_out").BeginArray();
    for (const auto& [scenario, why] : facts.left_out) {
      json.BeginObject().Field("scenario", std::string_view(scenario));
      json.Field("why", std::string_view(why)).EndObject();
    }
    json.EndArray();
  }
  WriteCausalitySkipped(input, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
