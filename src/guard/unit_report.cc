// SPDX-License-Identifier: Apache-2.0
#include "guard/unit_report.h"

#include <algorithm>

#include "base/json_writer.h"

namespace culprit::guard {
namespace {

bool IsSystemLibrary(std::string_view module) {
  return module.starts_with("libc.so") || module.starts_with("libc-2") ||
         module.starts_with("libpthread") || module.starts_with("ld-linux") ||
         module.starts_with("libstdc++");
}

bool SameFrames(const SeenStack& a, const SeenStack& b) {
  return a.by == b.by && a.running == b.running &&
         std::equal(a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
                    [](const NamedFrame& x, const NamedFrame& y) {
                      return x.module == y.module && x.function == y.function &&
                             (!x.function.empty() || x.offset == y.offset);
                    });
}

// A stack of the midst of the unit says what was slow, that of its end does not.
int Worth(const SeenStack& stack) { return stack.by == SeenStack::By::kEnd ? 0 : 1; }

void WriteStack(const SeenStack& stack, JsonWriter& json) {
  json.BeginObject();
  json.Field("by", Name(stack.by)).Field("seen", stack.seen);
  json.Field("state", stack.running ? "running" : "sleeping");
  if (stack.system_call >= 0) json.Field("system_call", stack.system_call);
  json.Key("frames").BeginArray();
  for (const NamedFrame& frame : stack.frames) {
    json.BeginObject().Field("frame", frame.ToString());
    if (!frame.file.empty()) json.Field("file", frame.file).Field("line", frame.line);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string UnitReport::Where() const {
  if (stacks.empty() || stacks.front().frames.empty()) return "";
  const std::vector<NamedFrame>& frames = stacks.front().frames;
  for (const NamedFrame& frame : frames) {
    if (!frame.module.empty() && !IsSystemLibrary(frame.module)) return frame.ToString();
  }
  return frames.front().ToString();
}

std::string_view Name(UnitReport::State state) {
  switch (state) {
    case UnitReport::State::kEnded:
      return "slow";
    case UnitReport::State::kHangs:
      return "hangs";
    case UnitReport::State::kHungEnded:
      return "hung";
    case UnitReport::State::kSpins:
      return "spins";
    case UnitReport::State::kTrickles:
      return "trickles";
  }
  return "";
}

std::string_view Name(SeenStack::By by) {
  switch (by) {
    case SeenStack::By::kGuard:
      return "guard";
    case SeenStack::By::kLook:
      return "look";
    case SeenStack::By::kEnd:
      return "end";
  }
  return "";
}

std::string_view Name(wire::UnitKind kind) {
  switch (kind) {
    case wire::UnitKind::kIteration:
      return "iteration";
    case wire::UnitKind::kHandler:
      return "handler";
    case wire::UnitKind::kCommand:
      return "command";
    case wire::UnitKind::kTail:
      return "tail";
  }
  return "unit";
}

void SortStacks(std::vector<SeenStack>& stacks) {
  std::vector<SeenStack> joined;
  for (SeenStack& stack : stacks) {
    const auto same = std::find_if(joined.begin(), joined.end(), [&](const SeenStack& other) {
      return SameFrames(stack, other);
    });
    if (same == joined.end()) {
      joined.push_back(std::move(stack));
    } else {
      same->seen += stack.seen;
    }
  }
  std::stable_sort(joined.begin(), joined.end(), [](const SeenStack& a, const SeenStack& b) {
    return std::pair(Worth(a), a.seen) > std::pair(Worth(b), b.seen);
  });
  stacks = std::move(joined);
}

std::string ToJson(const UnitReport& report) {
  JsonWriter json(JsonWriter::Style::kCompact);
  json.BeginObject();
  json.Field("state", Name(report.state)).Field("type", report.type_name);
  if (report.type != wire::kUnknown) json.Field("type_number", report.type);
  if (!report.nearest_type.empty()) json.Field("nearest_type", report.nearest_type);
  json.Field("unit", Name(report.kind)).Field("loop", report.loop);
  json.Field("process", report.process).Field("pid", report.pid).Field("tid", report.tid);
  json.Field("begin_unix_ns", report.begin_unix_ns).Field("begin_ns", report.begin_ns);
  json.Field("wall_ns", report.wall_ns).Field("counted_ns", report.counted_ns());
  json.Field("threshold_ns", report.threshold_ns);
  json.Field("ready_ns", report.ready_ns).Field("looked_ns", report.looked_ns);
  if (report.has_cpu) {
    json.Field("cpu_ns", report.cpu_ns).Field("blocked_ns", report.blocked_ns());
  }
  if (report.state == UnitReport::State::kSpins || report.state == UnitReport::State::kTrickles) {
    json.Field("units", report.units).Field("usual_unit_ns", report.usual_ns);
  }
  json.Field("similarity", static_cast<double>(report.similarity_ppm) / 1e6);
  json.Field("ready_events", report.ready_events).Field("where", report.Where());
  json.Key("stacks").BeginArray();
  for (const SeenStack& stack : report.stacks) WriteStack(stack, json);
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace culprit::guard
