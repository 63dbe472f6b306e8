// SPDX-License-Identifier: Apache-2.0
//
// Folded stacks, as flamegraph.pl, inferno, speedscope and others read them:
// one line a distinct stack, caller first, then a space and the total of its
// events' durations in nanoseconds. Unwaits have no duration; there the value
// is the number of events. Lines are sorted; equal ones are one.
//
// Events without a stack are the line [not sampled] or [no stack], so the sum
// of all lines is the total of the kind, to the nanosecond.
//
// In names, ";" becomes ":" and white space and control characters become "_":
// both part the fields of a line.
#include <map>
#include <unordered_map>

#include "export/event_walk.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;
using trace::Event;
using trace::EventKind;

constexpr size_t kChunkBytes = 256 * 1024;

std::string FoldedName(std::string_view name) {
  std::string text = Utf8Text(name);
  for (char& c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == ';') c = ':';
    if (byte <= 0x20 || byte == 0x7f) c = '_';
  }
  return text.empty() ? "[unnamed]" : text;
}

// Stacks without an id that share one line.
enum : uint32_t { kNotSampledLine = UINT32_MAX - 1, kNoStackLine = UINT32_MAX };

uint32_t LineOf(const Event& event) {
  if (event.stack.valid()) return event.stack.value;
  return (event.flags & trace::kNotSampled) != 0 ? kNotSampledLine : kNoStackLine;
}

std::string StackPart(const Dictionary& d, uint32_t line) {
  if (line == kNotSampledLine) return "[not sampled]";
  if (line == kNoStackLine) return "[no stack]";
  std::string text;
  for (trace::FrameId frame : d.StackFrames(trace::StackId(line))) {
    if (!text.empty()) text += ';';
    text += FoldedName(d.FrameName(frame));
  }
  return text;
}

std::string ThreadPart(const Dictionary& d, uint32_t thread) {
  if (thread == trace::ThreadId::kNone) return "[no process];[no thread];";
  const trace::Thread& row = d.threads()[thread];
  std::string text = row.process.valid() ? FoldedName(d.Text(d.processes()[row.process.value].name))
                                         : "[no process]";
  text += ";" + FoldedName(d.Text(row.name));
  if (row.tid >= 0) text += "(" + std::to_string(row.tid) + ")";
  return text + ";";
}

EventKind DefaultKind(const trace::TraceReader& reader) {
  for (const trace::BlockInfo& block : reader.blocks()) {
    if (block.HasKind(EventKind::kWait)) return EventKind::kWait;
  }
  return EventKind::kRunning;
}

Status WriteLines(const std::map<std::string, int64_t>& totals, const Sink& sink) {
  std::string chunk;
  for (const auto& [line, value] : totals) {
    chunk += line + " " + std::to_string(value) + "\n";
    if (chunk.size() < kChunkBytes) continue;
    CULPRIT_TRY(sink(chunk));
    chunk.clear();
  }
  return chunk.empty() ? Status() : sink(chunk);
}

}  // namespace

Result<Summary> ExportFolded(const trace::TraceReader& reader, const Options& options,
                             const Sink& sink) {
  CULPRIT_TRY(RequireReadable(reader));
  const EventKind kind = options.kind.value_or(DefaultKind(reader));
  const bool count_events = kind == EventKind::kUnwait || kind == EventKind::kMarker;
  std::unordered_map<uint64_t, int64_t> by_stack;  // thread << 32 | line
  CULPRIT_ASSIGN(
      Summary summary,
      WalkEvents(reader, options.progress, [&](const std::vector<Event>& events) -> Status {
        for (const Event& event : events) {
          if (event.kind != kind) continue;
          const uint64_t thread = options.threads ? event.thread.value : 0;
          by_stack[thread << 32 | LineOf(event)] += count_events ? 1 : event.dur_ns;
        }
        return Status();
      }));
  const Dictionary& d = reader.dictionary();
  std::map<std::string, int64_t> totals;
  for (const auto& [key, value] : by_stack) {
    std::string line = StackPart(d, static_cast<uint32_t>(key));
    if (options.threads) line = ThreadPart(d, static_cast<uint32_t>(key >> 32)) + line;
    totals[line] += value;
  }
  CULPRIT_TRY(WriteLines(totals, sink));
  return summary;
}

}  // namespace culprit::export_
