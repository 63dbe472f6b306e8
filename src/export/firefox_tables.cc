// SPDX-License-Identifier: Apache-2.0
#include "export/firefox_tables.h"

#include "base/json_writer.h"
#include "export/event_walk.h"

namespace culprit::export_ {
namespace {

using trace::Event;
using trace::EventKind;

std::string Quoted(std::string_view text) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.String(text);
  return json.Take();
}

// `value` again and again, for columns that say nothing here.
std::string Repeated(std::string_view value, size_t count) {
  FirefoxColumn column;
  for (size_t i = 0; i < count; ++i) column.Add(value);
  return column.text();
}

struct NamedColumn {
  std::string_view name;
  const std::string& text;
};

Status WriteTable(std::string_view name, size_t length, const std::vector<NamedColumn>& columns,
                  ChunkedSink& out) {
  CULPRIT_TRY(out.Write(",\n\"" + std::string(name) + "\":{\"length\":" + std::to_string(length)));
  for (const NamedColumn& column : columns) {
    CULPRIT_TRY(out.Write(",\"" + std::string(column.name) + "\":["));
    CULPRIT_TRY(out.Write(column.text));
    CULPRIT_TRY(out.Write("]"));
  }
  return {};
}

}  // namespace

std::string Milliseconds(int64_t time_ns, int64_t origin_ns) {
  const bool negative = time_ns < origin_ns;
  const uint64_t a = static_cast<uint64_t>(time_ns), b = static_cast<uint64_t>(origin_ns);
  const uint64_t ns = negative ? b - a : a - b;
  std::string text = (negative ? "-" : "") + std::to_string(ns / 1'000'000);
  if (ns % 1'000'000 == 0) return text;
  std::string digits = std::to_string(1'000'000 + ns % 1'000'000);
  digits.erase(digits.find_last_not_of('0') + 1);
  return text + "." + digits.substr(1);
}

uint32_t FirefoxShared::Text(std::string_view text) { return strings_.Intern(text).value; }

uint32_t FirefoxShared::Source(std::string_view file) {
  const uint32_t name = Text(file);
  const auto [it, is_new] = sources_.emplace(name, static_cast<uint32_t>(source_names_.size()));
  if (is_new) source_names_.push_back(name);
  return it->second;
}

Status FirefoxShared::Write(ChunkedSink& out) const {
  CULPRIT_TRY(out.Write("{\"stringArray\":["));
  for (size_t i = 0; i < strings_.size(); ++i) {
    CULPRIT_TRY(out.Write((i == 0 ? "\n" : ",\n") + Quoted(strings_.Get(StringId(i)))));
  }
  FirefoxColumn names;
  for (uint32_t name : source_names_) names.Add(name);
  const std::string nulls = Repeated("null", source_names_.size());
  return out.Write("],\n\"sources\":{\"length\":" + std::to_string(source_names_.size()) +
                   ",\"uuid\":[" + nulls + "],\"filename\":[" + names.text() + "]}}");
}

int64_t FirefoxThread::ResourceOf(trace::ModuleId module) {
  if (!module.valid()) return -1;
  const auto [it, is_new] =
      resource_index_.emplace(module.value, static_cast<uint32_t>(resource_index_.size()));
  if (is_new) {
    const trace::Dictionary& d = tables_.dictionary;
    resource_library_.Add(module.value);
    resource_name_.Add(tables_.shared.Text(d.Text(d.modules()[module.value].name)));
  }
  return it->second;
}

uint32_t FirefoxThread::FunctionOf(std::string_view name, trace::ModuleId module,
                                   std::string_view file) {
  const uint32_t text = tables_.shared.Text(name);
  const int64_t resource = ResourceOf(module);
  const auto [it, is_new] = function_index_.emplace(std::pair(text, resource),
                                                    static_cast<uint32_t>(function_index_.size()));
  if (is_new) {
    function_name_.Add(text);
    function_resource_.Add(resource);
    function_source_.Add(file.empty() ? "null" : std::to_string(tables_.shared.Source(file)));
  }
  return it->second;
}

uint32_t FirefoxThread::FrameOf(uint32_t frame_key) {
  const auto [it, is_new] =
      frame_index_.emplace(frame_key, static_cast<uint32_t>(frame_index_.size()));
  if (!is_new) return it->second;
  const trace::Dictionary& d = tables_.dictionary;
  FirefoxCategory category = FirefoxCategory::kOther;
  uint32_t function = 0;
  uint32_t line = 0;
  if (frame_key < d.frames().size()) {
    const trace::Frame& frame = d.frames()[frame_key];
    const bool kernel = (frame.flags & trace::kKernelMode) != 0;
    category = kernel ? FirefoxCategory::kKernel : FirefoxCategory::kUser;
    line = frame.line;
    function = frame.function.valid()
                   ? FunctionOf(d.Text(frame.function), frame.module, d.Text(frame.file))
                   : FunctionOf(d.FrameName(trace::FrameId(frame_key)), frame.module, "");
  } else {
    static constexpr std::string_view kNames[] = {"[wait]", "[ready]", "[not sampled]",
                                                  "[no stack]"};
    function = FunctionOf(kNames[frame_key - kWaitFrame], {}, "");
    if (frame_key == kWaitFrame) category = FirefoxCategory::kWait;
    if (frame_key == kReadyFrame) category = FirefoxCategory::kReady;
  }
  frame_function_.Add(function);
  frame_category_.Add(static_cast<int64_t>(category));
  frame_line_.Add(line == 0 ? "null" : std::to_string(line));
  return it->second;
}

uint32_t FirefoxThread::StackNode(int64_t prefix, uint32_t frame_key) {
  const uint32_t frame = FrameOf(frame_key);
  const auto [it, is_new] =
      stack_index_.emplace(std::pair(prefix, frame), static_cast<uint32_t>(stack_index_.size()));
  if (is_new) {
    stack_frame_.Add(frame);
    stack_prefix_.Add(prefix < 0 ? "null" : std::to_string(prefix));
  }
  return it->second;
}

int64_t FirefoxThread::StackOf(const Event& event) {
  int64_t node = -1;
  if (event.stack.valid()) {
    const auto known = stack_of_id_.find(event.stack.value);
    if (known != stack_of_id_.end()) {
      node = known->second;
    } else {
      for (trace::FrameId frame : tables_.dictionary.StackFrames(event.stack)) {
        node = StackNode(node, frame.value);
      }
      stack_of_id_.emplace(event.stack.value, static_cast<uint32_t>(node));
    }
  } else {
    const bool not_sampled = (event.flags & trace::kNotSampled) != 0;
    node = StackNode(node, not_sampled ? kNotSampledFrame : kNoFrame);
  }
  if (event.kind == EventKind::kWait) node = StackNode(node, kWaitFrame);
  if (event.kind == EventKind::kReady) node = StackNode(node, kReadyFrame);
  return node;
}

void FirefoxThread::AddSample(const Event& event) {
  sample_stack_.Add(StackOf(event));
  sample_time_.Add(Milliseconds(event.time_ns, begin_ns_));
  sample_weight_.Add(Milliseconds(event.dur_ns));
  sample_cpu_.Add(ran_before_ns_);
  ran_before_ns_ = event.kind == EventKind::kRunning ? event.dur_ns : 0;
  ++samples_;
}

void FirefoxThread::PutMarker(std::string_view name, int64_t begin_ns, int64_t end_ns,
                              const std::string& data) {
  marker_name_.Add(tables_.shared.Text(name));
  marker_begin_.Add(Milliseconds(begin_ns, begin_ns_));
  marker_end_.Add(Milliseconds(end_ns, begin_ns_));
  marker_data_.Add(data);
  ++markers_;
}

void FirefoxThread::AddInstance(const trace::Instance& instance) {
  PutMarker(tables_.dictionary.Text(instance.scenario), instance.t0_ns,
            std::max(instance.t0_ns, instance.t1_ns), "{\"type\":\"Instance\"}");
}

void FirefoxThread::AddMarker(const Event& event) {
  const trace::Dictionary& d = tables_.dictionary;
  JsonWriter data(JsonWriter::Style::kCompact);
  data.BeginObject();
  std::string name;
  if (event.kind == EventKind::kSyscall) {
    name = "syscall " + std::to_string(FirstArgument(event));
    data.Field("type", "Syscall").Field("number", FirstArgument(event)).Field("result", event.arg1);
  } else if (event.kind == EventKind::kCall) {
    name = "[no stack]";
    if (event.stack.valid()) name = d.FrameName(d.stacks()[event.stack.value].frame);
    data.Field("type", "Call");
  } else if (event.kind == EventKind::kHardware) {
    static constexpr std::string_view kOperations[] = {"read", "write", "flush", "discard"};
    name = event.arg1 >= 0 && event.arg1 < 4 ? kOperations[event.arg1] : "request";
    data.Field("type", "Hardware").Field("bytes", event.arg0);
    data.Field("operation", std::string_view(name));
  } else {
    // Begin and end of an instance are the instance's marker.
    if ((event.flags & (trace::kBegin | trace::kEnd)) != 0) return;
    name = MarkerName(d, event);
    data.Field("type", "Marker").Field("id", event.arg1);
  }
  data.EndObject();
  PutMarker(name, event.time_ns, EndOf(event), data.Take());
}

Status FirefoxThread::Write(ChunkedSink& out) const {
  const size_t frames = frame_index_.size(), functions = function_index_.size();
  const std::string zeros = Repeated("0", frames), nulls = Repeated("null", frames);
  const std::string none = Repeated("-1", frames);
  const std::string no = Repeated("false", functions), unknown = Repeated("null", functions);
  CULPRIT_TRY(WriteTable("samples", samples_,
                         {{"stack", sample_stack_.text()},
                          {"time", sample_time_.text()},
                          {"weight", sample_weight_.text()},
                          {"threadCPUDelta", sample_cpu_.text()}},
                         out));
  CULPRIT_TRY(out.Write(",\"weightType\":\"tracing-ms\"}"));
  const std::string intervals = Repeated("1", markers_), other = Repeated("0", markers_);
  CULPRIT_TRY(WriteTable("markers", markers_,
                         {{"data", marker_data_.text()},
                          {"name", marker_name_.text()},
                          {"startTime", marker_begin_.text()},
                          {"endTime", marker_end_.text()},
                          {"phase", intervals},
                          {"category", other}},
                         out));
  CULPRIT_TRY(out.Write("}"));
  CULPRIT_TRY(WriteTable("stackTable", stack_index_.size(),
                         {{"frame", stack_frame_.text()}, {"prefix", stack_prefix_.text()}}, out));
  CULPRIT_TRY(out.Write("}"));
  CULPRIT_TRY(WriteTable("frameTable", frames,
                         {{"address", none},
                          {"inlineDepth", zeros},
                          {"category", frame_category_.text()},
                          {"subcategory", zeros},
                          {"func", frame_function_.text()},
                          {"nativeSymbol", nulls},
                          {"innerWindowID", nulls},
                          {"line", frame_line_.text()},
                          {"column", nulls}},
                         out));
  CULPRIT_TRY(out.Write("}"));
  CULPRIT_TRY(WriteTable("funcTable", functions,
                         {{"name", function_name_.text()},
                          {"isJS", no},
                          {"relevantForJS", no},
                          {"resource", function_resource_.text()},
                          {"source", function_source_.text()},
                          {"lineNumber", unknown},
                          {"columnNumber", unknown}},
                         out));
  CULPRIT_TRY(out.Write("}"));
  const size_t resources = resource_index_.size();
  const std::string hosts = Repeated("null", resources), libraries = Repeated("1", resources);
  CULPRIT_TRY(WriteTable("resourceTable", resources,
                         {{"lib", resource_library_.text()},
                          {"name", resource_name_.text()},
                          {"host", hosts},
                          {"type", libraries}},
                         out));
  const std::string empty;
  CULPRIT_TRY(out.Write("}"));
  CULPRIT_TRY(WriteTable(
      "nativeSymbols", 0,
      {{"libIndex", empty}, {"address", empty}, {"name", empty}, {"functionSize", empty}}, out));
  return out.Write("}}");
}

}  // namespace culprit::export_
