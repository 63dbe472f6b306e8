// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/guard_text.h"

namespace culprit::cli {
namespace {

using guard::Profile;

void WriteContexts(const char* key, const Profile& profile,
                   const std::vector<guard::Context>& contexts, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const guard::Context& context : contexts) {
    json.String(FunctionName(profile, context.function));
  }
  json.EndArray();
}

void WriteLoops(const Profile& profile, JsonWriter& json) {
  json.Key("loops").BeginArray();
  for (uint32_t i = 0; i < profile.loops.size(); ++i) {
    const guard::ProfileLoop& loop = profile.loops[i];
    json.BeginObject();
    json.Field("name", LoopName(profile, i)).Field("external", loop.external);
    json.Field("hand_over", loop.hand_over);
    json.Field("parks", loop.parks);
    json.Field("iterations", loop.iterations).Field("ready_events", loop.ready_events);
    json.Field("sites", loop.sites.size());
    WriteContexts("handlers", profile, loop.handlers, json);
    WriteContexts("commands", profile, loop.commands, json);
    WriteContexts("turns", profile, loop.turns, json);
    json.Key("woken_by").BeginArray();
    for (const uint32_t other : loop.woken_by) json.Uint(other);
    json.EndArray().EndObject();
  }
  json.EndArray();
}

void WriteTypes(const Profile& profile, JsonWriter& json) {
  json.Key("types").BeginArray();
  for (const guard::UnitType& type : profile.types) {
    json.BeginObject();
    json.Field("name", type.name).Field("unit", guard::Name(type.kind)).Field("loop", type.loop);
    json.Field("trained_units", type.units).Field("shapes", type.shapes);
    json.Field("samples", type.stats.count()).Field("mean_ns", type.stats.mean_ns());
    json.Field("sigma_ns", type.stats.sigma_ns());
    json.Field("p50_ns", type.stats.QuantileNs(500'000));
    json.Field("p99_ns", type.stats.QuantileNs(990'000));
    json.Field("p9999_ns", type.stats.QuantileNs(999'900));
    json.Field("max_ns", type.stats.max_ns()).Field("threshold_ns", type.threshold_ns);
    json.EndObject();
  }
  json.EndArray();
}

void WriteGuards(const Profile& profile, const guard::PlanFacts& plan, JsonWriter& json) {
  const std::vector<uint32_t>& taken = plan.guards.numbers;
  json.Key("guards").BeginArray();
  for (size_t i = 0; i < profile.guards.size(); ++i) {
    const guard::Guard& one = profile.guards[i];
    json.BeginObject();
    json.Field("function", FunctionName(profile, one.function));
    json.Field("hits_per_unit", static_cast<double>(one.hits_per_mega_unit) / 1e6);
    json.Field("bits_gained", static_cast<double>(one.gain_microbits) / 1e6);
    json.Field("contexts", one.contexts.size());
    json.Field("in_budget", std::binary_search(taken.begin(), taken.end(), i));
    json.EndObject();
  }
  json.EndArray();
}

void WritePlanFacts(const guard::PlanFacts& plan, JsonWriter& json) {
  json.Key("plan").BeginObject();
  json.Field("guards", plan.guards.numbers.size()).Field("functions", plan.functions);
  json.Field("contexts", plan.context_bits);
  json.Field("hits_per_unit", static_cast<double>(plan.guards.hits_per_mega_unit) / 1e6);
  json.Field("units", plan.guards.units).Field("told_right", plan.guards.right);
  json.Field("unit_ns", plan.unit_ns).Field("unit_ns_measured", plan.unit_ns_measured);
  json.Field("cost_share", static_cast<double>(plan.cost_ppm) / 1e6);
  json.Field("unit_cost_share", static_cast<double>(plan.unit_cost_ppm) / 1e6);
  json.Field("confused_types", plan.confused_types).EndObject();
}

void WriteOwnCost(const OwnCostShare& cost, JsonWriter& json) {
  json.Key("measured_cost").BeginObject();
  json.Field("samples", cost.samples).Field("own_samples", cost.own);
  if (!cost.why_not.empty()) json.Field("why_not", cost.why_not);
  if (cost.why_not.empty() && cost.samples >= kFewestCostSamples) {
    json.Field("share", cost.Share()).Field("error", cost.Error());
  }
  json.EndObject();
}

}  // namespace

std::string GuardSummaryJson(const GuardSummary& summary) {
  const guard::SessionTotals& totals = summary.totals;
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("state", "summary").Field("dur_ns", summary.dur_ns);
  json.Field("processes", totals.processes).Field("units", totals.units);
  json.Field("hits", totals.hits).Field("slow_units", summary.reports);
  json.Field("not_reported", totals.suppressed).Field("withdrawn", totals.withdrawn);
  json.Field("lost_records", totals.lost_records);
  json.Field("functions_patched", totals.patched).Field("functions_refused", totals.refused);
  json.Field("functions_removed", totals.removed).Field("other_builds", totals.foreign_modules);
  json.Field("budget_share", static_cast<double>(summary.budget_ppm) / 1e6);
  json.Field("expected_cost_share", static_cast<double>(summary.plan.cost_ppm) / 1e6);
  WriteOwnCost(summary.own_cost, json);
  json.Field("looks_share", static_cast<double>(summary.looks_ppm) / 1e6);
  json.Key("slow_types").BeginArray();
  for (const auto& [type, row] : summary.by_type) {
    json.BeginObject().Field("type", type).Field("slow_units", row.first);
    json.Field("longest_ns", row.second).EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

std::string GuardProfileJson(const Profile& profile, const ProfileView& view) {
  guard::PlanFacts plan;
  guard::BuildPlan(profile, guard::wire::Mode::kGuard, {.budget_ppm = view.budget_ppm}, &plan);
  JsonWriter json;
  json.BeginObject().Field("program", profile.program);
  json.Key("modules").BeginArray();
  for (const guard::ProfileModule& module : profile.modules) {
    json.BeginObject().Field("path", module.path).Field("build_id", module.build_id).EndObject();
  }
  json.EndArray();
  json.Key("training").BeginObject();
  json.Field("runs", profile.training.runs).Field("threads", profile.training.threads);
  json.Field("entries", profile.training.entries).Field("units", profile.training.units);
  json.Field("dropped_units", profile.training.dropped_units).EndObject();
  json.Key("quality").BeginObject();
  json.Field("units", profile.quality.units).Field("right", profile.quality.right);
  json.Field("held_out_units", profile.quality.held_out_units);
  json.Field("held_out_right", profile.quality.held_out_right);
  json.Field("hits", profile.quality.hits);
  json.Field("ambiguous_hits", profile.quality.ambiguous_hits)
      .Field("dropped_hits", profile.quality.dropped_hits)
      .EndObject();
  WriteLoops(profile, json);
  WriteTypes(profile, json);
  WriteGuards(profile, plan, json);
  WritePlanFacts(plan, json);
  json.Field("unknown_samples", profile.unknown.count());
  json.Field("unknown_threshold_ns", profile.unknown_threshold_ns);
  json.Field("iteration_threshold_ns", profile.iteration_threshold_ns);
  json.Field("floor_ns", profile.floor_ns).EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
