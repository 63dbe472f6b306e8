// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "analyze/heaviest.h"
#include "analyze/part.h"
#include "base/json_writer.h"
#include "base/parallel.h"
#include "corpus/corpus.h"
#include "corpus/memory_gate.h"
#include "trace/trace_reader.h"
#include "waitgraph/auto_instances.h"
#include "waitgraph/critical_path.h"
#include "waitgraph/segment_text.h"
#include "waitgraph/timelines.h"

namespace culprit::analyze {
namespace {

using waitgraph::CriticalPath;
using waitgraph::Segment;

constexpr size_t kFramesNamed = 3;
constexpr uint64_t kBytesAnEvent = 48 + 32 + 32;  // as read, in the time lines, on the paths

// The examples of the first clusters, each once, in the order of the ranking.
std::vector<uint32_t> ChooseInstances(const Analysis& analysis, size_t most) {
  std::vector<uint32_t> chosen;
  std::vector<bool> taken(analysis.evidence.instances.size());
  for (const stackmine::Cluster& cluster : analysis.mined.clusters) {
    for (const uint32_t instance : cluster.metrics.examples) {
      if (chosen.size() == most) return chosen;
      if (!taken[instance]) chosen.push_back(instance);
      taken[instance] = true;
    }
  }
  return chosen;
}

// The longest segments, so that what is drawn is a tree again; ascending.
std::vector<uint32_t> LongestSegments(const CriticalPath& path, size_t most) {
  std::vector<int64_t> durations;
  durations.reserve(path.segments.size());
  for (const Segment& segment : path.segments) durations.push_back(segment.dur_ns());
  return Heaviest(durations, most);
}

class InstanceJson {
 public:
  InstanceJson(const waitgraph::SegmentText& text, const CriticalPath& path,
               std::vector<uint32_t> kept)
      : text_(text), path_(path), kept_(std::move(kept)) {
    for (uint32_t i = 0; i < kept_.size(); ++i) {
      place_[kept_[i]] = i;
      Lane(path_.segments[kept_[i]].thread);
    }
  }

  void Write(int64_t t0_ns, JsonWriter& json) {
    WriteThreads(json);
    json.Key("segments").BeginObject();
    const auto column = [&](const char* name, auto write) {
      json.Key(name).BeginArray();
      for (const uint32_t s : kept_) write(path_.segments[s]);
      json.EndArray();
    };
    column("thread", [&](const Segment& s) { json.Uint(Lane(s.thread)); });
    column("kind", [&](const Segment& s) { json.String(Name(s.kind)); });
    column("note", [&](const Segment& s) { json.String(Name(s.note)); });
    column("begin_ns", [&](const Segment& s) { json.Int(s.begin_ns - t0_ns); });
    column("dur_ns", [&](const Segment& s) { json.Int(s.dur_ns()); });
    column("parent", [&](const Segment& s) {
      json.Int(s.parent == UINT32_MAX ? -1 : static_cast<int64_t>(place_.at(s.parent)));
    });
    column("text", [&](const Segment& s) { json.String(text_.Describe(s)); });
    json.EndObject().Field("left_out", path_.segments.size() - kept_.size());
  }

 private:
  size_t Lane(trace::ThreadId thread) {
    const auto [it, added] = lanes_.try_emplace(thread.value, order_.size());
    if (added) order_.push_back(thread);
    return it->second;
  }

  void WriteThreads(JsonWriter& json) {
    const trace::Dictionary& dictionary = text_.dictionary();
    json.Key("threads").BeginArray();
    for (const trace::ThreadId thread : order_) {
      const bool device =
          thread.valid() && dictionary.threads()[thread.value].kind == trace::ThreadKind::kDevice;
      json.BeginObject().Field("name", std::string_view(text_.Thread(thread)));
      json.Field("device", device).EndObject();
    }
    json.EndArray();
  }

  const waitgraph::SegmentText& text_;
  const CriticalPath& path_;
  std::vector<uint32_t> kept_;
  std::map<uint32_t, uint32_t> place_;
  std::map<uint32_t, size_t> lanes_;
  std::vector<trace::ThreadId> order_;
};

std::optional<std::string> PathOfTrace(const Analysis& analysis, uint32_t trace) {
  if (!analysis.is_corpus) return analysis.path;
  const Result<corpus::Corpus> corpus = corpus::Corpus::Open(analysis.path);
  if (!corpus.ok()) return std::nullopt;
  const auto row = corpus.value().Find(analysis.evidence.traces[trace].name);
  return row.ok() ? std::optional(corpus.value().TracePath(row.value())) : std::nullopt;
}

// The chosen instances of one trace, which is read once; `json` by place in
// `chosen`. A trace that is gone since leaves them empty.
void DrawTrace(const Analysis& analysis, const std::vector<uint32_t>& chosen, uint32_t trace,
               const PartOptions& options, corpus::MemoryGate& gate,
               std::vector<std::string>& drawn) {
  const std::optional<std::string> file = PathOfTrace(analysis, trace);
  if (!file) return;
  auto reader = trace::TraceReader::Open(*file);
  if (!reader.ok()) return;
  const corpus::MemoryTicket ticket(gate, reader.value().events() * kBytesAnEvent);
  const trace::Trace whole = std::move(reader).value().ReadAll();
  const waitgraph::Timelines timelines(whole);
  const bool automatic = analysis.evidence.traces[trace].automatic;
  const std::vector<trace::Instance> instances =
      automatic ? waitgraph::FindInstances(timelines, analysis.automatic).instances
                : whole.instances;
  const waitgraph::SegmentText text(timelines, kFramesNamed);
  waitgraph::PathFinder finder(timelines);
  CriticalPath path;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const stackmine::InstanceFacts& facts = analysis.evidence.instances[chosen[i]];
    if (facts.trace != trace || facts.index >= instances.size()) continue;
    finder.Find(instances[facts.index], path);
    JsonWriter json(JsonWriter::Style::kCompact);
    json.BeginObject().Field("name", std::string_view(analysis.evidence.InstanceName(chosen[i])));
    json.Field("scenario", std::string_view(analysis.evidence.scenarios[facts.scenario]));
    json.Field("dur_ns", facts.dur_ns);
    InstanceJson(text, path, LongestSegments(path, options.segments))
        .Write(instances[facts.index].t0_ns, json);
    json.EndObject();
    drawn[i] = json.Take();
  }
}

Part IndexPart(const Analysis& analysis, const std::vector<uint32_t>& drawn) {
  const stackmine::Evidence& evidence = analysis.evidence;
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Key("names").BeginArray();
  for (const uint32_t i : drawn) json.String(evidence.InstanceName(i));
  json.EndArray().Key("scenarios").BeginArray();
  for (const uint32_t i : drawn) {
    json.String(evidence.scenarios[evidence.instances[i].scenario]);
  }
  json.EndArray().Key("dur_ns").BeginArray();
  for (const uint32_t i : drawn) json.Int(evidence.instances[i].dur_ns);
  json.EndArray().EndObject();
  return {.name = "instances", .json = json.Take()};
}

}  // namespace

std::vector<Part> InstanceParts(const Analysis& analysis, const PartOptions& options) {
  const std::vector<uint32_t> chosen = ChooseInstances(analysis, options.instances);
  std::vector<uint32_t> traces;
  for (const uint32_t i : chosen) traces.push_back(analysis.evidence.instances[i].trace);
  std::sort(traces.begin(), traces.end());
  traces.erase(std::unique(traces.begin(), traces.end()), traces.end());
  std::vector<std::string> drawn(chosen.size());
  corpus::MemoryGate gate(analysis.memory_bytes);
  ParallelFor(traces.size(), analysis.jobs,
              [&](size_t t) { DrawTrace(analysis, chosen, traces[t], options, gate, drawn); });
  std::vector<Part> parts(1);
  std::vector<uint32_t> listed;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (drawn[i].empty()) continue;
    parts.push_back(
        {.name = "instance-" + std::to_string(listed.size()), .json = std::move(drawn[i])});
    listed.push_back(chosen[i]);
  }
  if (listed.empty()) return {};
  parts.front() = IndexPart(analysis, listed);
  return parts;
}

}  // namespace culprit::analyze
