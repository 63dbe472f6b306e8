// SPDX-License-Identifier: Apache-2.0
#include "cli/analyze_parts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "cli/infer_facts.h"
#include "corpus/corpus.h"
#include "guard/profile_file.h"
#include "guard/unit_report.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostInferred = 50;  // traces of a corpus
constexpr uint64_t kMicrosecond = 1000;

struct SlowUnits {
  uint64_t count = 0;
  uint64_t longest_ns = 0;
};

// Lines that are no reports are passed over: the last one may be cut.
std::map<std::string, SlowUnits> ReadReports(const std::string& folder) {
  std::map<std::string, SlowUnits> by_type;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (it->path().extension() != ".jsonl") continue;
    std::ifstream file(it->path());
    std::string line;
    while (std::getline(file, line)) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("type") || !json["type"].is_string()) continue;
      SlowUnits& slow = by_type[json["type"].get<std::string>()];
      ++slow.count;
      if (json.contains("wall_ns") && json["wall_ns"].is_number_unsigned()) {
        slow.longest_ns = std::max(slow.longest_ns, json["wall_ns"].get<uint64_t>());
      }
    }
  }
  return by_type;
}

// Bars of half a doubling from a microsecond on.
std::vector<uint64_t> Bars(const guard::LatencyStats& stats) {
  std::vector<uint64_t> bars;
  for (const auto& [bucket, count] : stats.histogram()) {
    const uint64_t ns = guard::LatencyStats::LowerEndNs(bucket);
    size_t bar = 0;
    if (ns > kMicrosecond) {
      bar = static_cast<size_t>(2 * std::log2(static_cast<double>(ns) / kMicrosecond));
    }
    if (bars.size() <= bar) bars.resize(bar + 1);
    bars[bar] += count;
  }
  return bars;
}

void WriteType(const guard::UnitType& type, const SlowUnits& slow, JsonWriter& json) {
  json.BeginObject().Field("name", std::string_view(type.name));
  json.Field("unit", guard::Name(type.kind)).Field("samples", type.stats.count());
  json.Field("p50_ns", type.stats.QuantileNs(500'000));
  json.Field("p99_ns", type.stats.QuantileNs(990'000));
  json.Field("max_ns", type.stats.max_ns()).Field("threshold_ns", type.threshold_ns);
  json.Field("slow", slow.count).Field("longest_ns", slow.longest_ns);
  json.Key("histogram").BeginArray();
  for (const uint64_t bar : Bars(type.stats)) json.Uint(bar);
  json.EndArray().EndObject();
}

}  // namespace

Result<analyze::Part> UnitsPart(const std::string& profile_path, const std::string& reports) {
  CULPRIT_ASSIGN(const guard::Profile profile, guard::ReadProfile(profile_path));
  const std::map<std::string, SlowUnits> slow =
      reports.empty() ? std::map<std::string, SlowUnits>() : ReadReports(reports);
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("program", std::string_view(profile.program));
  json.Field("floor_ns", profile.floor_ns).Key("types").BeginArray();
  for (const guard::UnitType& type : profile.types) {
    const auto found = slow.find(type.name);
    WriteType(type, found == slow.end() ? SlowUnits() : found->second, json);
  }
  json.EndArray().EndObject();
  return analyze::Part{.name = "units", .json = json.Take()};
}

Result<analyze::Part> InferencePart(const std::string& path, const std::string& profile,
                                    const std::string& against, size_t jobs) {
  std::vector<std::pair<std::string, std::string>> traces = {{path, path}};  // file, name
  std::error_code code;
  if (fs::is_directory(path, code)) {
    CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(path));
    CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
    traces.clear();
    for (const corpus::TraceRow& row : rows) {
      const auto syscalls = static_cast<size_t>(trace::EventKind::kSyscall);
      if (row.kind_counts[syscalls] > 0 && traces.size() < kMostInferred) {
        traces.emplace_back(corpus.TracePath(row), row.name);
      }
    }
  }
  std::string json = R"({"traces":[)";
  bool first = true;
  const std::vector<std::string> normals(against.empty() ? 0 : 1, against);
  for (const auto& [trace, name] : traces) {
    Result<InferFacts> facts =
        GatherInference({.path = trace, .profile = profile, .against = normals, .jobs = jobs});
    if (!facts.ok()) {
      // A corpus may hold traces of other programs; a profile that cannot be read
      // is the same for all.
      if (traces.size() == 1 || facts.error().file == profile) return facts.error();
      continue;
    }
    facts.value().path = name;
    json += (first ? "" : ",") + InferJson(facts.value());
    first = false;
  }
  return analyze::Part{.name = "inference", .json = json + "]}"};
}

}  // namespace culprit::cli
