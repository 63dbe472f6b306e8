// SPDX-License-Identifier: Apache-2.0
//
// One JSON document a trace, written as it is read; every process, thread,
// frame, stack, instance and event stands on a line of its own, so that line
// tools work on it too:
//
//   metadata   machine, os, kernel, arch, app, app_version, source, clock,
//              wall_start_ns, begin_ns, end_ns, cpus, sample_period_ns,
//              has_switches, has_wakers, complete, labels{}, properties{}
//   processes  [{pid, name, command_line, cgroup, start_ns, end_ns}]
//   threads    [{tid, process, name, kind, start_ns, end_ns}]
//   frames     ["module!function"]
//   stacks     [{parent, frame}]: the caller's stack, the leaf's frame
//   instances  [{scenario, thread, t0_ns, t1_ns}]
//   events     [{kind, time_ns, dur_ns, thread, peer, stack, cpu, flags[],
//                bytes, operation, number, result, name, id}]
//
// process, thread, peer, parent, frame and stack are indexes into those lists,
// from 0. What is unknown or means nothing for the kind is left out. Events
// are in time order within each block of the file; blocks may overlap. Times
// are nanoseconds of the trace's clock and may pass 2^53.
#include "base/json_writer.h"
#include "export/event_walk.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;
using trace::Event;

constexpr size_t kChunkBytes = 256 * 1024;

// Collects lines and hands them on in large pieces.
class JsonLines {
 public:
  explicit JsonLines(const Sink& sink) : sink_(sink) {}

  Status Text(std::string_view text) {
    pending_ += text;
    if (pending_.size() < kChunkBytes) return {};
    return Flush();
  }
  void BeginList(std::string_view key) {
    pending_.append(",\n\"").append(key).append("\":[");
    first_ = true;
  }
  // What `json` holds becomes the list's next line.
  Status Item(JsonWriter& json) {
    pending_ += first_ ? "\n" : ",\n";
    first_ = false;
    return Text(json.Take());
  }
  void EndList() { pending_ += "]"; }
  Status Flush() {
    CULPRIT_TRY(sink_(pending_));
    pending_.clear();
    return {};
  }

 private:
  const Sink& sink_;
  std::string pending_;
  bool first_ = true;
};

void TextField(JsonWriter& json, std::string_view key, std::string_view value) {
  if (!value.empty()) json.Key(key).String(value);
}

template <class Tag>
void IdField(JsonWriter& json, std::string_view key, Id<Tag> id) {
  if (id.valid()) json.Field(key, id.value);
}

void TimeField(JsonWriter& json, std::string_view key, int64_t time_ns) {
  if (time_ns != trace::kNoTime) json.Field(key, time_ns);
}

std::string MetadataJson(const trace::TraceReader& reader) {
  const trace::Metadata& m = reader.metadata();
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject();
  TextField(json, "machine", m.machine);
  TextField(json, "os", m.os);
  TextField(json, "kernel", m.kernel);
  TextField(json, "arch", m.arch);
  TextField(json, "app", m.app);
  TextField(json, "app_version", m.app_version);
  TextField(json, "source", m.source);
  TextField(json, "clock", m.clock);
  if (m.wall_start_ns != 0) json.Field("wall_start_ns", m.wall_start_ns);
  json.Field("begin_ns", m.begin_ns).Field("end_ns", m.end_ns);
  if (m.cpus != 0) json.Field("cpus", m.cpus);
  if (m.sample_period_ns != 0) json.Field("sample_period_ns", m.sample_period_ns);
  json.Field("has_switches", m.has_switches).Field("has_wakers", m.has_wakers);
  json.Field("complete", reader.complete());
  json.Key("labels").BeginObject();
  for (const auto& [key, value] : m.labels) json.Key(key).String(value);
  json.EndObject().Key("properties").BeginObject();
  for (const auto& [key, value] : m.properties) json.Key(key).String(value);
  json.EndObject().EndObject();
  return json.Take();
}

Status WriteProcessesAndThreads(const Dictionary& d, JsonLines& lines) {
  JsonWriter json(JsonWriter::Style::kCompact);
  lines.BeginList("processes");
  for (const trace::Process& process : d.processes()) {
    json.BeginObject().Field("pid", process.pid);
    TextField(json, "name", d.Text(process.name));
    TextField(json, "command_line", d.Text(process.command_line));
    TextField(json, "cgroup", d.Text(process.cgroup));
    TimeField(json, "start_ns", process.start_ns);
    TimeField(json, "end_ns", process.end_ns);
    CULPRIT_TRY(lines.Item(json.EndObject()));
  }
  lines.EndList();
  lines.BeginList("threads");
  for (const trace::Thread& thread : d.threads()) {
    json.BeginObject().Field("tid", thread.tid);
    IdField(json, "process", thread.process);
    TextField(json, "name", d.Text(thread.name));
    json.Field("kind", Name(thread.kind));
    TimeField(json, "start_ns", thread.start_ns);
    TimeField(json, "end_ns", thread.end_ns);
    CULPRIT_TRY(lines.Item(json.EndObject()));
  }
  lines.EndList();
  return {};
}

Status WriteFramesAndStacks(const Dictionary& d, JsonLines& lines) {
  JsonWriter json(JsonWriter::Style::kCompact);
  lines.BeginList("frames");
  for (size_t i = 0; i < d.frames().size(); ++i) {
    CULPRIT_TRY(lines.Item(json.String(d.FrameName(trace::FrameId(i)))));
  }
  lines.EndList();
  lines.BeginList("stacks");
  for (const trace::StackNode& node : d.stacks()) {
    json.BeginObject();
    IdField(json, "parent", node.parent);
    IdField(json, "frame", node.frame);
    CULPRIT_TRY(lines.Item(json.EndObject()));
  }
  lines.EndList();
  return {};
}

Status WriteInstances(const trace::TraceReader& reader, JsonLines& lines) {
  JsonWriter json(JsonWriter::Style::kCompact);
  lines.BeginList("instances");
  for (const trace::Instance& instance : reader.instances()) {
    json.BeginObject().Field("scenario", reader.dictionary().Text(instance.scenario));
    IdField(json, "thread", instance.thread);
    json.Field("t0_ns", instance.t0_ns).Field("t1_ns", instance.t1_ns);
    CULPRIT_TRY(lines.Item(json.EndObject()));
  }
  lines.EndList();
  return {};
}

void WriteEvent(const Dictionary& d, const Event& event, JsonWriter& json) {
  json.BeginObject().Field("kind", trace::Name(event.kind)).Field("time_ns", event.time_ns);
  if (event.dur_ns != 0 || trace::IsTile(event.kind)) json.Field("dur_ns", event.dur_ns);
  IdField(json, "thread", event.thread);
  IdField(json, "peer", event.peer);
  IdField(json, "stack", event.stack);
  if (event.cpu != Event::kNoCpu) json.Field("cpu", event.cpu);
  if (event.flags != 0) {
    json.Key("flags").BeginArray();
    for (std::string_view name : FlagNames(event.flags)) json.String(name);
    json.EndArray();
  }
  const ArgumentNames names = ArgumentNamesOf(event.kind);
  TextField(json, "name", MarkerName(d, event));
  if (!names.arg0.empty()) json.Field(names.arg0, FirstArgument(event));
  if (trace::IsSumOfWaits(event)) json.Field("sum_of", event.arg0);
  if (event.kind == trace::EventKind::kSyscall) {
    if (const auto operation = trace::CallOperation(event.arg0)) {
      json.Field("operation", int64_t{*operation});
    }
  }
  if (!names.arg1.empty()) json.Field(names.arg1, event.arg1);
  json.EndObject();
}

}  // namespace

Result<Summary> ExportJson(const trace::TraceReader& reader, const Options& options,
                           const Sink& sink) {
  CULPRIT_TRY(RequireReadable(reader));
  const Dictionary& d = reader.dictionary();
  JsonLines lines(sink);
  CULPRIT_TRY(lines.Text("{\"metadata\":" + MetadataJson(reader)));
  CULPRIT_TRY(WriteProcessesAndThreads(d, lines));
  CULPRIT_TRY(WriteFramesAndStacks(d, lines));
  CULPRIT_TRY(WriteInstances(reader, lines));
  lines.BeginList("events");
  JsonWriter json(JsonWriter::Style::kCompact);
  CULPRIT_ASSIGN(Summary summary, WalkEvents(reader, options.progress,
                                             [&](const std::vector<Event>& events) -> Status {
                                               for (const Event& event : events) {
                                                 WriteEvent(d, event, json);
                                                 CULPRIT_TRY(lines.Item(json));
                                               }
                                               return Status();
                                             }));
  lines.EndList();
  CULPRIT_TRY(lines.Text("}\n"));
  CULPRIT_TRY(lines.Flush());
  return summary;
}

}  // namespace culprit::export_
