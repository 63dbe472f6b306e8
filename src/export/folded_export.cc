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

#include "export/chunked_sink.h"
#include "export/event_walk.h"
#include "export/stack_totals.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;

std::string FoldedName(std::string_view name) {
  std::string text = Utf8Text(name);
  for (char& c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == ';') c = ':';
    if (byte <= 0x20 || byte == 0x7f) c = '_';
  }
  return text.empty() ? "[unnamed]" : text;
}

std::string StackPart(const Dictionary& d, uint32_t stack) {
  std::string text(PseudoStackName(stack));
  if (!text.empty()) return text;
  for (trace::FrameId frame : d.StackFrames(trace::StackId(stack))) {
    if (!text.empty()) text += ';';
    text += FoldedName(d.FrameName(frame));
  }
  return text;
}

std::string ThreadPart(const Dictionary& d, trace::ThreadId thread) {
  if (!thread.valid()) return "[no process];[no thread];";
  const trace::Thread& row = d.threads()[thread.value];
  std::string text = row.process.valid() ? FoldedName(d.Text(d.processes()[row.process.value].name))
                                         : "[no process]";
  text += ";" + FoldedName(d.Text(row.name));
  if (row.tid >= 0) text += "(" + std::to_string(row.tid) + ")";
  return text + ";";
}

Status WriteLines(const std::map<std::string, int64_t>& lines, const Sink& sink) {
  ChunkedSink out(sink);
  for (const auto& [line, value] : lines) {
    CULPRIT_TRY(out.Write(line + " " + std::to_string(value) + "\n"));
  }
  return out.Flush();
}

}  // namespace

Result<Summary> ExportFolded(const trace::TraceReader& reader, const Options& options,
                             const Sink& sink) {
  CULPRIT_ASSIGN(StackTotals totals, SumByStack(reader, options, options.threads));
  const Dictionary& d = reader.dictionary();
  std::map<std::string, int64_t> lines;
  for (const StackTotal& row : totals.rows) {
    std::string line = StackPart(d, row.stack);
    if (options.threads) line = ThreadPart(d, row.thread) + line;
    int64_t& value = lines[line];
    value = AddSaturated(value, totals.Value(row));
  }
  CULPRIT_TRY(WriteLines(lines, sink));
  return totals.summary;
}

}  // namespace culprit::export_
