// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/info_facts.h"

namespace culprit::cli {
namespace {

using trace::Breakdown;
using trace::StackCost;

void Kinds(const InfoFacts& facts, JsonWriter& json) {
  json.Key("kinds").BeginObject();
  for (size_t i = 0; i < trace::kEventKinds; ++i) {
    const trace::KindTotals& kind = facts.breakdown.contents.kinds[i];
    json.Key(trace::kEventKindNames[i]).BeginObject();
    json.Field("events", kind.events).Field("dur_ns", kind.dur_ns);
    json.Field("with_stack", kind.with_stack).EndObject();
  }
  json.EndObject();
  json.Field("waits_with_waker", facts.breakdown.contents.waits_with_waker);
  json.Key("capabilities").BeginArray();
  for (const trace::Capability& c : trace::Capabilities(facts.breakdown.contents)) {
    json.BeginObject().Field("analysis", c.analysis).Field("possible", c.possible);
    json.Field("reason", c.reason).EndObject();
  }
  json.EndArray();
}

void Times(const InfoFacts& facts, JsonWriter& json) {
  const Breakdown& b = facts.breakdown;
  json.Key("breakdown").BeginObject();
  json.Field("scope", facts.threads_as_instances ? "threads" : "instances");
  json.Field("count", b.instances).Field("total_ns", b.total_ns).Field("wait_ns", b.wait_ns);
  json.Field("running_ns", b.running_ns).Field("not_sampled_ns", b.not_sampled_ns);
  json.Field("ready_ns", b.ready_ns).Field("unattributed_ns", b.unattributed_ns).EndObject();
}

void Stacks(const char* key, const Breakdown& b, const std::vector<StackCost>& costs, size_t top,
            JsonWriter& json) {
  json.Key(key).BeginArray();
  for (size_t i = 0; i < costs.size() && i < top; ++i) {
    json.BeginObject().Field("cost_ns", costs[i].cost_ns).Field("events", costs[i].events);
    json.Field("instances", costs[i].instances).Field("traces", costs[i].traces);
    json.Key("frames").BeginArray();
    for (trace::FrameId frame : b.dictionary.StackFrames(costs[i].stack)) {
      json.String(b.dictionary.FrameName(frame));
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void Skipped(const InfoFacts& facts, JsonWriter& json) {
  json.Key("skipped").BeginArray();
  for (const auto& [what, row] : facts.breakdown.diagnostics.rows()) {
    json.BeginObject().Field("what", what).Field("count", row.count);
    if (row.first_offset) json.Field("first_offset", *row.first_offset);
    json.EndObject();
  }
  json.EndArray();
  json.Key("unreadable").BeginArray();
  for (const std::string& error : facts.unreadable) json.String(error);
  json.EndArray();
}

void Scenarios(const InfoFacts& facts, JsonWriter& json) {
  json.Key("scenarios").BeginArray();
  for (const corpus::ScenarioRow& row : facts.scenarios) {
    json.BeginObject().Field("name", row.name).Field("instances", row.instances);
    json.Field("p50_ns", row.p50_ns).Field("p90_ns", row.p90_ns).Field("max_ns", row.max_ns);
    json.Field("total_ns", row.total_ns).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string InfoJson(const InfoFacts& facts, size_t top) {
  JsonWriter json;
  json.BeginObject();
  json.Field("kind", facts.is_corpus ? "corpus" : "trace").Field("path", facts.path);
  json.Field("traces", facts.traces).Field("incomplete", facts.incomplete);
  json.Field("events", facts.events).Field("bytes", facts.bytes).Field("dur_ns", facts.dur_ns);
  json.Field("threads", facts.threads).Field("instances", facts.breakdown.contents.instances);
  for (const auto& [key, values] : facts.origins) {
    json.Key(key).BeginArray();
    for (const std::string& value : values) json.String(value);
    json.EndArray();
  }
  json.Key("properties").BeginObject();
  for (const auto& [key, value] : facts.properties) json.Field(key, value);
  json.EndObject();
  Kinds(facts, json);
  Scenarios(facts, json);
  Times(facts, json);
  Stacks("waits", facts.breakdown, facts.breakdown.waits, top, json);
  Stacks("running", facts.breakdown, facts.breakdown.running, top, json);
  Skipped(facts, json);
  json.Key("truth").BeginArray();
  for (const PlantedBug& bug : facts.truth) {
    json.BeginObject().Field("name", bug.name).Field("kind", bug.kind);
    json.Field("cost_ns", bug.cost_ns).Field("noise", bug.noise).EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace culprit::cli
