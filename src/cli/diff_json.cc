// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/causality_text.h"
#include "cli/diff_report.h"

namespace culprit::cli {
namespace {

using causality::ChainChange;
using causality::DiffSide;
using causality::DurationFacts;
using causality::ScenarioDiff;

void WriteSide(std::string_view key, const DiffSide& side, JsonWriter& json) {
  json.Key(key).BeginObject().Field("cost_ns", side.cost_ns).Field("count", side.count);
  json.Field("instances", side.instances).Field("per_instance_ns", side.per_instance_ns);
  json.EndObject();
}

void WriteChange(const ChainChange& change, JsonWriter& json) {
  json.BeginObject();
  WriteTuple(change.tuple, json);
  json.Field("change", Name(change.change)).Field("delta_ns", change.delta_ns);
  WriteSide("before", change.before, json);
  WriteSide("after", change.after, json);
  json.Field("p_value", change.p_value).Field("p_single", change.p_single);
  json.Field("significant", change.significant);
  WriteExamples(change.examples, json);
  json.EndObject();
}

void WriteDurations(std::string_view key, const DurationFacts& facts, int64_t mean_ns,
                    int64_t pruned_ns, JsonWriter& json) {
  json.Key(key).BeginObject().Field("instances", facts.count).Field("mean_ns", mean_ns);
  json.Field("p50_ns", facts.p50_ns).Field("p90_ns", facts.p90_ns).Field("p99_ns", facts.p99_ns);
  json.Field("max_ns", facts.max_ns).Field("pruned_ns", pruned_ns).EndObject();
}

void WriteScenario(const ScenarioDiff& scenario, JsonWriter& json) {
  json.BeginObject().Field("scenario", std::string_view(scenario.scenario));
  WriteDurations("before", scenario.before, scenario.mean_before_ns, scenario.pruned_before_ns,
                 json);
  WriteDurations("after", scenario.after, scenario.mean_after_ns, scenario.pruned_after_ns, json);
  json.Field("delta_ns", scenario.mean_after_ns - scenario.mean_before_ns);
  json.Field("p_value", scenario.p_value).Field("same", scenario.same);
  json.Field("exceptions", scenario.exceptions).Key("changes").BeginArray();
  for (const ChainChange& change : scenario.changes) WriteChange(change, json);
  json.EndArray().EndObject();
}

void WriteNames(std::string_view key, const std::vector<std::string>& names, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const std::string& name : names) json.String(name);
  json.EndArray();
}

void WriteInput(std::string_view key, const CausalityInput& input, JsonWriter& json) {
  json.Key(key).BeginObject();
  WriteCausalityHead(input, json);
  WriteCausalitySkipped(input, json);
  json.EndObject();
}

}  // namespace

std::string DiffJson(const DiffFacts& facts) {
  JsonWriter json;
  json.BeginObject();
  json.Field("ok", facts.violations.empty() && facts.all_read());
  json.Key("bound");
  facts.bound ? json.Double(*facts.bound) : json.Null();
  json.Field("significant", facts.significant);
  WriteInput("before", facts.before, json);
  WriteInput("after", facts.after, json);
  json.Key("violations").BeginArray();
  for (const DiffViolation& violation : facts.violations) {
    json.BeginObject().Field("scenario", std::string_view(violation.scenario));
    json.Field("what", std::string_view(violation.what)).Field("delta_ns", violation.delta_ns);
    json.Field("mean_before_ns", violation.before_ns);
    json.Field("chain", std::string_view(violation.chain));
    json.Field("example", std::string_view(violation.example)).EndObject();
  }
  json.EndArray().Key("scenarios").BeginArray();
  for (const ScenarioDiff& scenario : facts.result.scenarios) WriteScenario(scenario, json);
  json.EndArray();
  WriteNames("only_before", facts.result.only_before, json);
  WriteNames("only_after", facts.result.only_after, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
