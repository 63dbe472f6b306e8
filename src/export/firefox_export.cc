// SPDX-License-Identifier: Apache-2.0
//
// A profile for the Firefox Profiler (profiler.firefox.com), in its processed
// profile format, version 58. One thread a thread of the trace that has
// anything to show. Its samples are its running, wait and ready events (or
// those of the chosen kind) at their begin, weighted by duration: weightType is
// tracing-ms, and weights are milliseconds to the nanosecond, so that sums are
// the trace's. A wait ends in the frame [wait], a ready in [ready]: each has a
// category, so waiting is told from running in the same function.
//
// Markers are instances, system calls, calls, device requests and markers.
// Strings and source files are collected and written last. Memory: the
// dictionary and what thread_walk.h says.
#include <algorithm>

#include "base/json_writer.h"
#include "export/event_walk.h"
#include "export/firefox_tables.h"
#include "export/thread_walk.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;
using trace::Event;
using trace::EventKind;
using trace::ThreadId;

constexpr int kGeckoVersion = 31;
constexpr int kProcessedVersion = 58;

void CategoryList(JsonWriter& json) {
  static constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
      {"Other", "grey"},
      {"User", "yellow"},
      {"Kernel", "orange"},
      {"Wait", "blue"},
      {"Ready", "magenta"}};
  json.Key("categories").BeginArray();
  for (const auto& [name, color] : kCategories) {
    json.BeginObject().Field("name", name).Field("color", color);
    json.Key("subcategories").BeginArray().String("Other").EndArray().EndObject();
  }
  json.EndArray();
}

struct SchemaField {
  std::string_view key;
  std::string_view format;
};

void MarkerSchema(std::string_view name, const std::vector<SchemaField>& fields, JsonWriter& json) {
  json.BeginObject().Field("name", name);
  json.Field("chartLabel", "{marker.name}").Field("tooltipLabel", "{marker.name}");
  json.Field("tableLabel", "{marker.name}");
  json.Key("display").BeginArray().String("marker-chart").String("marker-table").EndArray();
  json.Key("fields").BeginArray();
  for (const SchemaField& field : fields) {
    json.BeginObject().Field("key", field.key).Field("label", field.key);
    json.Field("format", field.format).EndObject();
  }
  json.EndArray().EndObject();
}

std::string MetaJson(const trace::Metadata& m) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject().Field("version", kGeckoVersion);
  json.Field("preprocessedProfileVersion", kProcessedVersion);
  json.Field("processType", 0).Field("stackwalk", 1).Field("debug", false);
  json.Field("product", m.app.empty() ? std::string_view("culprit") : std::string_view(m.app));
  json.Field("importedFrom", "culprit " CULPRIT_VERSION);
  if (!m.arch.empty()) json.Field("abi", std::string_view(m.arch));
  if (!m.os.empty()) json.Field("oscpu", std::string_view(m.os + " " + m.kernel));
  if (m.cpus != 0) json.Field("logicalCPUs", m.cpus);
  json.Field("symbolicated", true).Field("symbolicationNotSupported", true);
  json.Field("usesOnlyOneStackType", true).Field("sourceCodeIsNotOnSearchfox", true);
  json.Field("keepProfileThreadOrder", true);
  json.Key("sampleUnits").BeginObject().Field("time", "ms").Field("eventDelay", "ms");
  json.Field("threadCPUDelta", "ns").EndObject();
  CategoryList(json);
  json.Key("markerSchema").BeginArray();
  MarkerSchema("Instance", {}, json);
  MarkerSchema("Syscall", {{"number", "integer"}, {"result", "integer"}}, json);
  MarkerSchema("Call", {}, json);
  MarkerSchema("Hardware", {{"bytes", "bytes"}, {"operation", "string"}}, json);
  MarkerSchema("Marker", {{"id", "integer"}}, json);
  json.EndArray();
  std::string text = json.Take();
  // Times in milliseconds, exact.
  text += ",\"startTime\":" + Milliseconds(m.wall_start_ns);
  text += ",\"interval\":" + Milliseconds(m.sample_period_ns > 0 ? m.sample_period_ns : 1'000'000);
  text += ",\"profilingStartTime\":0,\"profilingEndTime\":" + Milliseconds(m.end_ns, m.begin_ns);
  return text + "}";
}

class FirefoxExport {
 public:
  FirefoxExport(const trace::TraceReader& reader, const Options& options, const Sink& sink)
      : reader_(reader),
        d_(reader.dictionary()),
        kind_(options.kind),
        out_(sink),
        tables_(d_, shared_),
        begin_ns_(reader.metadata().begin_ns) {}

  Result<Summary> Write(Progress* progress) {
    CULPRIT_TRY(out_.Write("{\"meta\":" + MetaJson(reader_.metadata()) + ",\n\"libs\":["));
    CULPRIT_TRY(WriteLibraries());
    CULPRIT_TRY(out_.Write("],\n\"threads\":["));
    SortInstances();
    CULPRIT_ASSIGN(
        Summary summary,
        WalkThreads(reader_, progress, [&](ThreadId thread, const std::vector<Event>& events) {
          return Visit(thread, events);
        }));
    CULPRIT_TRY(out_.Write("],\n\"shared\":"));
    CULPRIT_TRY(shared_.Write(out_));
    CULPRIT_TRY(out_.Write("}\n"));
    CULPRIT_TRY(out_.Flush());
    return summary;
  }

 private:
  Status WriteLibraries() {
    JsonWriter json(JsonWriter::Style::kCompact);
    for (size_t i = 0; i < d_.modules().size(); ++i) {
      const trace::Module& module = d_.modules()[i];
      const std::string_view name = d_.Text(module.name);
      const std::string_view path = module.path.valid() ? d_.Text(module.path) : name;
      json.BeginObject().Field("arch", std::string_view(reader_.metadata().arch));
      json.Field("name", name).Field("path", path).Field("debugName", name);
      json.Field("debugPath", path).Field("breakpadId", "").Key("codeId");
      const std::string_view build_id = d_.Text(module.build_id);
      if (build_id.empty()) {
        json.Null();
      } else {
        json.String(build_id);
      }
      json.EndObject();
      CULPRIT_TRY(out_.Write((i == 0 ? "\n" : ",\n") + json.Take()));
    }
    return {};
  }

  void SortInstances() {
    instances_ = reader_.instances();
    std::stable_sort(instances_.begin(), instances_.end(),
                     [](const trace::Instance& a, const trace::Instance& b) {
                       return std::pair(a.thread.value, a.t0_ns) <
                              std::pair(b.thread.value, b.t0_ns);
                     });
  }

  bool IsSample(const Event& event) const {
    return kind_ ? event.kind == *kind_ : trace::IsTile(event.kind);
  }

  Status Visit(ThreadId thread, const std::vector<Event>& events) {
    FirefoxThread columns(tables_, begin_ns_);
    for (const Event& event : events) {
      // An unwait stands with the thread it woke, and is no sample of that.
      if (IsSample(event)) columns.AddSample(event);
      if (event.kind >= EventKind::kHardware) columns.AddMarker(event);
    }
    const auto begin = std::lower_bound(
        instances_.begin(), instances_.end(), thread.value,
        [](const trace::Instance& a, uint32_t value) { return a.thread.value < value; });
    for (auto it = begin; it != instances_.end() && it->thread == thread; ++it) {
      columns.AddInstance(*it);
    }
    if (columns.empty()) return {};
    CULPRIT_TRY(out_.Write(threads_written_++ == 0 ? "\n" : ",\n"));
    CULPRIT_TRY(out_.Write(HeadOf(thread)));
    return columns.Write(out_);
  }

  // The thread object's plain fields, with the brace that opens it.
  std::string HeadOf(ThreadId thread) const {
    const trace::Thread row = thread.valid() ? d_.threads()[thread.value] : trace::Thread();
    const bool in_process = row.process.valid();
    const trace::Process process =
        in_process ? d_.processes()[row.process.value] : trace::Process();
    std::string pid = std::to_string(process.pid);
    if (process.pid < 0) pid = in_process ? "process " + std::to_string(row.process.value) : "none";
    JsonWriter json(JsonWriter::Style::kCompact);
    json.BeginObject()
        .Field("processType", "default")
        .Field("name", thread.valid() ? d_.Text(row.name) : "[no thread]");
    json.Field("isMainThread", in_process && row.tid >= 0 && row.tid == process.pid);
    if (in_process) json.Field("processName", d_.Text(process.name));
    json.Field("pid", std::string_view(pid)).Key("tid");
    if (row.tid >= 0) {
      json.Int(row.tid);
    } else {
      json.String("thread " + std::to_string(thread.value));
    }
    json.Field("showMarkersInTimeline", true).Key("pausedRanges").BeginArray().EndArray();
    return json.Take() + ",\"processStartupTime\":" + Lifetime(process.start_ns, "0") +
           ",\"processShutdownTime\":" + Lifetime(process.end_ns, "null") +
           ",\"registerTime\":" + Lifetime(row.start_ns, "0") +
           ",\"unregisterTime\":" + Lifetime(row.end_ns, "null");
  }
  std::string Lifetime(int64_t time_ns, std::string_view unknown) const {
    return time_ns == trace::kNoTime ? std::string(unknown) : Milliseconds(time_ns, begin_ns_);
  }

  const trace::TraceReader& reader_;
  const Dictionary& d_;
  const std::optional<EventKind> kind_;
  ChunkedSink out_;
  FirefoxShared shared_;
  FirefoxTables tables_;
  const int64_t begin_ns_;
  std::vector<trace::Instance> instances_;
  size_t threads_written_ = 0;
};

}  // namespace

Result<Summary> ExportFirefox(const trace::TraceReader& reader, const Options& options,
                              const Sink& sink) {
  if (options.kind == EventKind::kUnwait || options.kind == EventKind::kMarker) {
    return Error{.message = "wake-ups and markers take no time: there is nothing to weigh",
                 .hint = "leave --kind out, or choose another kind"};
  }
  CULPRIT_TRY(RequireReadable(reader));
  return FirefoxExport(reader, options, sink).Write(options.progress);
}

}  // namespace culprit::export_
