// SPDX-License-Identifier: Apache-2.0
#include "synth/truth.h"

#include <algorithm>

#include "base/json_writer.h"

namespace culprit::synth {
namespace {

void WriteNames(JsonWriter& json, std::string_view key,
                const std::vector<std::string_view>& names) {
  json.Key(key).BeginArray();
  for (std::string_view name : names) json.String(name);
  json.EndArray();
}

void WriteBug(JsonWriter& json, const Truth& truth, const PlantedTruth& bug) {
  const Behaviour& behaviour = BehaviourOf(bug.plant);
  json.BeginObject();
  json.Field("name", behaviour.name).Field("kind", behaviour.kind);
  WriteNames(json, "pattern", behaviour.pattern);
  json.Field("event_kind", trace::Name(behaviour.event_kind));
  json.Field("scenario", behaviour.scenario);
  json.Key("instances").BeginArray();
  for (const std::string& instance : bug.instances) json.String(instance);
  json.EndArray();
  json.Field("traces", bug.traces).Field("events", bug.events);
  json.Field("cost_ns", bug.cost_ns).Field("planted_ns", bug.planted_ns);
  json.Field("noise", behaviour.noise).Field("by_design", behaviour.by_design);
  // Then the sum over matching stacks is zero and only arg0, arg1 tell.
  if (behaviour.event_kind == trace::EventKind::kSyscall && !truth.syscall_stacks) {
    json.Field("stacks_dropped", true);
  }
  if (behaviour.chain) {
    json.Key("chain").BeginObject();
    WriteNames(json, "wait", behaviour.chain->wait);
    WriteNames(json, "unwait", behaviour.chain->unwait);
    WriteNames(json, "running", behaviour.chain->running);
    json.EndObject();
  }
  json.EndObject();
}

}  // namespace

void Truth::Add(std::string_view trace_name, const TraceTruth& trace) {
  for (uint8_t plant = 1; plant < kPlantCount; ++plant) {
    const Tally& tally = trace[plant];
    if (tally.events == 0) continue;
    auto at = std::lower_bound(bugs.begin(), bugs.end(), plant,
                               [](const PlantedTruth& row, uint8_t p) { return row.plant < p; });
    if (at == bugs.end() || at->plant != plant) {
      at = bugs.insert(at, PlantedTruth{});
      at->plant = static_cast<Plant>(plant);
    }
    at->events += tally.events;
    at->cost_ns += tally.cost_ns;
    at->planted_ns += tally.planted_ns;
    ++at->traces;
    for (uint32_t instance : tally.instances) {
      at->instances.push_back(std::string(trace_name) + ":" + std::to_string(instance));
    }
  }
}

std::string TruthJson(const Truth& truth) {
  JsonWriter json;
  json.BeginObject();
  json.Field("seed", truth.seed).Field("like", std::string_view(truth.like));
  json.Field("scale", truth.scale).Field("traces", truth.traces);
  json.Key("bugs").BeginArray();
  for (const PlantedTruth& bug : truth.bugs) WriteBug(json, truth, bug);
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::synth
