// SPDX-License-Identifier: Apache-2.0
#include "cli/info_facts.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/parallel.h"

namespace culprit::cli {
namespace {

using trace::Breakdown;
using trace::BreakdownOf;
using trace::BreakdownScope;
using trace::TraceReader;

// How many traces are analysed before their parts are added up: enough to keep
// all cores busy, few enough to bound memory.
constexpr size_t kBatch = 64;

void AddOrigin(InfoFacts& facts, const std::string& what, const std::string& value) {
  if (value.empty()) return;
  auto& values = facts.origins[what];
  const auto place = std::lower_bound(values.begin(), values.end(), value);
  if (place == values.end() || *place != value) values.insert(place, value);
}

// Metadata and TraceRow name these fields alike.
template <class Source>
void AddOrigins(InfoFacts& facts, const Source& source) {
  AddOrigin(facts, "machine", source.machine);
  AddOrigin(facts, "os", source.os);
  AddOrigin(facts, "kernel", source.kernel);
  AddOrigin(facts, "arch", source.arch);
  AddOrigin(facts, "app", source.app);
  AddOrigin(facts, "app_version", source.app_version);
  AddOrigin(facts, "source", source.source);
  facts.min_cpus = facts.traces == 0 ? source.cpus : std::min(facts.min_cpus, source.cpus);
  facts.max_cpus = std::max(facts.max_cpus, source.cpus);
}

// The value at the nearest rank: index ceil(percent/100 * n) - 1.
int64_t Percentile(const std::vector<int64_t>& sorted, size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

std::vector<corpus::ScenarioRow> ScenariosOf(const TraceReader& reader) {
  std::map<std::string, std::vector<int64_t>> durations;
  for (const trace::Instance& instance : reader.instances()) {
    durations[std::string(reader.dictionary().Text(instance.scenario))].push_back(
        instance.dur_ns());
  }
  std::vector<corpus::ScenarioRow> rows;
  for (auto& [name, values] : durations) {
    std::sort(values.begin(), values.end());
    int64_t total_ns = 0;
    for (int64_t value : values) total_ns += value;
    rows.push_back({.name = name,
                    .instances = values.size(),
                    .traces = 1,
                    .min_ns = values.front(),
                    .p50_ns = Percentile(values, 50),
                    .p90_ns = Percentile(values, 90),
                    .max_ns = values.back(),
                    .total_ns = total_ns});
  }
  return rows;
}

struct Part {
  std::optional<Breakdown> breakdown;
  std::string error;
};

Part PartOf(const std::string& path, BreakdownScope scope) {
  auto reader = TraceReader::Open(path);
  if (!reader.ok()) return {.breakdown = {}, .error = reader.error().ToString()};
  return {.breakdown = BreakdownOf(reader.value(), scope), .error = {}};
}

}  // namespace

Result<InfoFacts> GatherTraceInfo(const std::string& path) {
  CULPRIT_ASSIGN(TraceReader reader, TraceReader::Open(path));
  InfoFacts facts;
  facts.path = path;
  AddOrigins(facts, reader.metadata());
  facts.traces = 1;
  facts.incomplete = reader.diagnostics().empty() ? 0 : 1;
  facts.bytes = reader.file_bytes();
  facts.events = reader.events();
  facts.dur_ns = std::max<int64_t>(0, reader.metadata().end_ns - reader.metadata().begin_ns);
  facts.threads = reader.dictionary().threads().size();
  facts.properties = reader.metadata().properties;
  facts.scenarios = ScenariosOf(reader);
  facts.threads_as_instances = reader.instances().empty();
  facts.breakdown = BreakdownOf(
      reader, facts.threads_as_instances ? BreakdownScope::kThreads : BreakdownScope::kInstances);
  return facts;
}

Result<InfoFacts> GatherCorpusInfo(const std::string& folder, size_t jobs, Progress& progress) {
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Open(folder));
  CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
  InfoFacts facts;
  facts.is_corpus = true;
  facts.path = folder;
  CULPRIT_ASSIGN(facts.truth, ReadTruth(folder));
  CULPRIT_ASSIGN(facts.scenarios, corpus.Scenarios());
  for (const corpus::TraceRow& row : rows) {
    AddOrigins(facts, row);
    ++facts.traces;
    facts.incomplete += row.complete ? 0 : 1;
    facts.bytes += row.bytes;
    facts.events += row.events;
    facts.dur_ns += row.dur_ns;
    facts.threads += row.threads;
  }
  facts.threads_as_instances = facts.scenarios.empty();
  const BreakdownScope scope =
      facts.threads_as_instances ? BreakdownScope::kThreads : BreakdownScope::kInstances;

  trace::BreakdownSum sum;
  progress.Start("reading", "events", facts.events);
  for (size_t begin = 0; begin < rows.size(); begin += kBatch) {
    std::vector<Part> parts(std::min(kBatch, rows.size() - begin));
    ParallelFor(parts.size(), jobs, [&](size_t i) {
      parts[i] = PartOf(corpus.TracePath(rows[begin + i]), scope);
      progress.Advance(rows[begin + i].events);
    });
    for (Part& part : parts) {
      if (part.breakdown) sum.Add(*part.breakdown);
      if (!part.error.empty()) facts.unreadable.push_back(part.error);
    }
  }
  progress.Finish();
  facts.breakdown = std::move(sum).Finish();
  return facts;
}

}  // namespace culprit::cli
