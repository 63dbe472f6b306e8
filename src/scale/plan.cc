// SPDX-License-Identifier: Apache-2.0
#include "scale/plan.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "causality/evidence_codec.h"
#include "corpus/corpus.h"
#include "scale/profile_part_codec.h"
#include "stackmine/evidence_codec.h"

namespace culprit::scale {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string ToHex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 15];
  }
  return text;
}

std::optional<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = kHexDigits.find(text[i]);
    const size_t low = kHexDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::vector<uint64_t> CutIntoShards(const std::vector<corpus::TraceRow>& traces,
                                    const PlanOptions& options) {
  uint64_t events = 0;
  for (const corpus::TraceRow& row : traces) events += row.events;
  const uint64_t most = std::max<uint64_t>(options.max_shards, 1);
  const uint64_t a_shard = std::max({options.events_a_shard, events / most + 1, uint64_t{1}});
  std::vector<uint64_t> ends;
  uint64_t held = 0;
  for (uint64_t i = 0; i < traces.size(); ++i) {
    held += traces[i].events;
    if (held < a_shard && i + 1 < traces.size()) continue;
    ends.push_back(i + 1);
    held = 0;
  }
  // An empty corpus has one empty shard, so that the stages are the same.
  if (ends.empty()) ends.push_back(0);
  return ends;
}

// What parts are stretches of: shards; of a profile, the parts themselves, because
// each takes its functions from all shards.
uint64_t PartsOf(const Plan& plan) {
  constexpr uint64_t kMostProfileParts = 64;
  const uint64_t shards = plan.shard_ends.size();
  return plan.profile ? std::min(shards, kMostProfileParts) : shards;
}

// Ascending, the last one at `end`.
bool AreEnds(const std::vector<uint64_t>& ends, uint64_t end) {
  return !ends.empty() && std::is_sorted(ends.begin(), ends.end()) && ends.back() == end;
}

// A trace is one in the folder of traces, wherever a plan comes from.
bool IsPlainName(std::string_view file) {
  return !file.empty() && file != "." && file != ".." && file.find('/') == std::string_view::npos &&
         file.find('\0') == std::string_view::npos;
}

std::vector<corpus::TraceRow> TracesFrom(const Json& list) {
  std::vector<corpus::TraceRow> traces;
  for (const Json& item : list) {
    corpus::TraceRow row;
    row.name = item.at("name").get<std::string>();
    row.file = item.at("file").get<std::string>();
    row.sha256 = item.at("sha256").get<std::string>();
    row.bytes = item.at("bytes").get<uint64_t>();
    row.events = item.at("events").get<uint64_t>();
    row.complete = item.at("complete").get<bool>();
    traces.push_back(std::move(row));
  }
  return traces;
}

std::optional<PatternsPlan> PatternsFrom(const Json& item) {
  PatternsPlan patterns;
  patterns.lambda_ns = item.at("lambda_ns").get<int64_t>();
  patterns.max_patterns = item.at("max_patterns").get<uint64_t>();
  patterns.pieces = item.at("pieces").get<uint64_t>();
  patterns.database = item.at("database").get<std::string>();
  if (patterns.pieces == 0) return std::nullopt;
  return patterns;
}

// Throws what the JSON library throws where something is not what it should be.
std::optional<Plan> Decode(std::string_view text) {
  const Json json = Json::parse(text);
  Plan plan;
  plan.version = json.at("version").get<std::string>();
  plan.corpus = json.at("corpus").get<std::string>();
  if (json.contains("mine")) {
    const auto bytes = FromHex(json.at("mine").get<std::string>());
    if (bytes) plan.mine = stackmine::DecodeOptions(*bytes);
    if (!plan.mine) return std::nullopt;
  }
  if (json.contains("causes")) {
    const auto bytes = FromHex(json.at("causes").get<std::string>());
    if (bytes) plan.causes = causality::DecodeOptions(*bytes);
    if (!plan.causes) return std::nullopt;
  }
  if (json.contains("profile")) {
    const auto bytes = FromHex(json.at("profile").get<std::string>());
    if (bytes) plan.profile = DecodeProfileOptions(*bytes);
    if (!plan.profile) return std::nullopt;
  }
  if (json.contains("patterns")) {
    plan.patterns = PatternsFrom(json.at("patterns"));
    if (!plan.patterns) return std::nullopt;
  }
  plan.max_trace_bytes = json.at("max_trace_bytes").get<uint64_t>();
  plan.traces = TracesFrom(json.at("traces"));
  plan.shard_ends = json.at("shard_ends").get<std::vector<uint64_t>>();
  plan.part_ends = json.at("part_ends").get<std::vector<uint64_t>>();
  const int kinds =
      (plan.mine || plan.causes ? 1 : 0) + (plan.profile ? 1 : 0) + (plan.patterns ? 1 : 0);
  const uint64_t cut = plan.patterns ? plan.patterns->pieces : plan.traces.size();
  const bool sound = kinds == 1 &&
                     (!plan.patterns || (plan.traces.empty() && plan.shard_ends.size() == cut)) &&
                     AreEnds(plan.shard_ends, cut) && AreEnds(plan.part_ends, PartsOf(plan)) &&
                     std::all_of(plan.traces.begin(), plan.traces.end(),
                                 [](const auto& row) { return IsPlainName(row.file); });
  return sound ? std::optional(std::move(plan)) : std::nullopt;
}

void WriteNumbers(std::string_view key, const std::vector<uint64_t>& numbers, JsonWriter& json) {
  json.Key(key).BeginArray();
  for (const uint64_t number : numbers) json.Uint(number);
  json.EndArray();
}

}  // namespace

std::vector<uint64_t> CutIntoParts(uint64_t shards, uint64_t shards_a_part) {
  std::vector<uint64_t> ends;
  const uint64_t step = std::max<uint64_t>(shards_a_part, 1);
  for (uint64_t end = step; end < shards; end += step) ends.push_back(end);
  ends.push_back(shards);
  return ends;
}

Result<Plan> MakePlan(const std::string& corpus_folder, const PlanOptions& options) {
  CULPRIT_CHECK((options.mine || options.causes) != options.profile.has_value());
  Plan plan;
  plan.version = CULPRIT_VERSION;
  std::error_code code;
  plan.corpus = std::filesystem::absolute(corpus_folder, code).lexically_normal().string();
  plan.mine = options.mine;
  plan.causes = options.causes;
  plan.profile = options.profile;
  plan.max_trace_bytes = options.max_trace_bytes;
  CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(corpus_folder));
  CULPRIT_ASSIGN(plan.traces, corpus.List());
  plan.shard_ends = CutIntoShards(plan.traces, options);
  plan.part_ends = plan.profile ? CutIntoParts(PartsOf(plan), 1)
                                : CutIntoParts(plan.shard_ends.size(), options.shards_a_part);
  return plan;
}

std::string PlanToJson(const Plan& plan) {
  JsonWriter json;
  json.BeginObject().Field("version", std::string_view(plan.version));
  json.Field("corpus", std::string_view(plan.corpus));
  // As bytes: a task must see exactly the options that summaries are keyed by.
  if (plan.mine) json.Field("mine", std::string_view(ToHex(EncodeOptions(*plan.mine))));
  if (plan.causes) json.Field("causes", std::string_view(ToHex(EncodeOptions(*plan.causes))));
  if (plan.profile) {
    json.Field("profile", std::string_view(ToHex(EncodeProfileOptions(*plan.profile))));
  }
  if (plan.patterns) {
    json.Key("patterns").BeginObject().Field("lambda_ns", plan.patterns->lambda_ns);
    json.Field("max_patterns", plan.patterns->max_patterns);
    json.Field("pieces", plan.patterns->pieces);
    json.Field("database", std::string_view(plan.patterns->database)).EndObject();
  }
  json.Field("max_trace_bytes", plan.max_trace_bytes);
  WriteNumbers("shard_ends", plan.shard_ends, json);
  WriteNumbers("part_ends", plan.part_ends, json);
  json.Key("traces").BeginArray();
  for (const corpus::TraceRow& row : plan.traces) {
    json.BeginObject().Field("name", std::string_view(row.name));
    json.Field("file", std::string_view(row.file));
    json.Field("sha256", std::string_view(row.sha256));
    json.Field("bytes", row.bytes).Field("events", row.events).Field("complete", row.complete);
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

Result<Plan> PlanFromJson(std::string_view json, const std::string& file) {
  std::string why = "something is missing or does not fit together";
  try {
    std::optional<Plan> plan = Decode(json);
    if (plan) return std::move(*plan);
  } catch (const Json::exception& exception) {
    why = exception.what();
  }
  return Error{.message = "is no plan of a run of this version of culprit: " + why,
               .file = file,
               .hint = "start the run again in another folder"};
}

}  // namespace culprit::scale
