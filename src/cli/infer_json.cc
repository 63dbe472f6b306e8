// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/infer_facts.h"
#include "trace/error_table.h"

namespace culprit::cli {
namespace {

using episode::InferredFunction;
using episode::Symbol;

void WriteSymbols(const InferFacts& facts, std::string_view key, std::span<const Symbol> symbols,
                  JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const Symbol symbol : symbols) json.String(facts.profile.symbols.Name(symbol));
  json.EndArray();
}

void WriteUnit(const InferFacts& facts, uint32_t index, JsonWriter& json) {
  const episode::Unit& unit = facts.inference.units.units[index];
  const auto& calls = facts.log.threads[unit.thread].calls;
  const uint8_t flags = facts.inference.anomalies.flags[index];
  json.BeginObject().Field("unit", index);
  json.Field("thread", std::string_view(facts.thread_labels[unit.thread]));
  json.Field("begin_ns", calls[unit.first].time_ns);
  json.Field("end_ns", calls[unit.first + unit.count - 1].end_ns()).Field("calls", unit.count);
  json.Key("why").BeginArray();
  if ((flags & episode::kSmallCluster) != 0) json.String("small cluster");
  if ((flags & episode::kUnusualTimes) != 0) json.String("durations");
  if ((flags & episode::kUnusualCounts) != 0) json.String("counts");
  json.EndArray().EndObject();
}

void WriteFunction(const InferFacts& facts, const InferredFunction& function, JsonWriter& json) {
  json.BeginObject().Field("function", std::string_view(function.function));
  json.Field("score", function.score).Field("raw_score", function.raw_score);
  json.Field("own", function.own).Field("matched", function.matched);
  json.Key("co_owners").BeginArray();
  for (const std::string& name : function.co_owners) json.String(name);
  json.EndArray();
  WriteSymbols(facts, "symbols", function.symbols, json);
  json.Key("episodes").BeginArray();
  for (const episode::EpisodeMatch& match : function.episodes) {
    json.BeginObject();
    WriteSymbols(facts, "symbols", match.episode.span(), json);
    json.Field("count", match.count).Field("profile_count", match.profile_count).EndObject();
  }
  json.EndArray().Key("units").BeginArray();
  for (const uint32_t unit : function.units) WriteUnit(facts, unit, json);
  json.EndArray().Field("unit_count", function.unit_count);
  if (function.first_ns) {
    json.Field("first_ns", *function.first_ns).Field("last_ns", *function.last_ns);
    json.Field("order", function.order);
  } else {
    json.Key("first_ns").Null().Key("last_ns").Null().Key("order").Null();
  }
  json.EndObject();
}

void WriteFunctions(const InferFacts& facts, std::string_view key,
                    const std::vector<InferredFunction>& functions, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const InferredFunction& function : functions) WriteFunction(facts, function, json);
  json.EndArray();
}

void WriteExcess(const InferFacts& facts, JsonWriter& json) {
  const episode::Comparison& comparison = facts.inference.comparison;
  json.Key("excess_calls").BeginArray();
  for (const episode::SymbolExcess& row : comparison.calls) {
    const episode::SymbolLoad& load = facts.inference.load.of(row.symbol);
    json.BeginObject().Field("symbol", facts.profile.symbols.Name(row.symbol));
    json.Field("calls", load.calls).Field("expected", static_cast<double>(row.expected) / 1000);
    json.Field("excess", static_cast<double>(row.excess) / 1000).Field("failed", load.failed);
    if (load.failed > 0) json.Field("error", std::string_view(trace::ErrorName(load.error)));
    json.EndObject();
  }
  json.EndArray().Key("excess_time").BeginArray();
  for (const episode::SymbolExcess& row : comparison.time) {
    json.BeginObject().Field("symbol", facts.profile.symbols.Name(row.symbol));
    json.Field("time_ns", row.observed).Field("expected_ns", row.expected);
    json.Field("excess_ns", row.excess).EndObject();
  }
  json.EndArray();
  json.Field("scale", static_cast<double>(comparison.scale_buggy) /
                          static_cast<double>(comparison.scale_normal));
  json.Field("mix_distance", comparison.mix_distance);
}

void WriteNotes(const InferFacts& facts, JsonWriter& json) {
  json.Key("warnings").BeginArray();
  for (const std::string& line : facts.warnings) json.String(line);
  for (const std::string& line : facts.inference.warnings) json.String(line);
  json.EndArray().Key("notes").BeginArray();
  for (const std::string& line : facts.inference.notes) json.String(line);
  json.EndArray().Key("skipped").BeginArray();
  for (const auto& [what, row] : facts.diagnostics.rows()) {
    json.BeginObject().Field("what", std::string_view(what)).Field("count", row.count).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string InferJson(const InferFacts& facts) {
  const episode::Inference& inference = facts.inference;
  JsonWriter json;
  json.BeginObject().Field("path", std::string_view(facts.path));
  json.Field("profile", std::string_view(facts.profile_path));
  if (facts.against.empty()) {
    json.Key("against").Null();
  } else {
    json.Key("against").BeginArray();
    for (const std::string& path : facts.against) json.String(path);
    json.EndArray();
  }
  json.Field("method", inference.method == episode::Method::kPaper ? "paper" : "excess");
  json.Field("syscalls", facts.log.syscalls).Field("profiled", inference.profiled);
  json.Field("named", inference.named).Field("left_out", inference.left_out);
  if (inference.null_rows) {
    json.Field("null_rows", *inference.null_rows);
  } else {
    json.Key("null_rows").Null();
  }
  WriteFunctions(facts, "functions", inference.functions, json);
  WriteFunctions(facts, "time", inference.time, json);
  WriteFunctions(facts, "stacks", inference.stacks, json);
  json.Field("units", inference.units.units.size());
  json.Field("unit_instances", inference.units.instances);
  json.Field("clusters", inference.anomalies.clusters);
  json.Field("anomalous", inference.anomalies.abnormal);
  WriteExcess(facts, json);
  WriteNotes(facts, json);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
