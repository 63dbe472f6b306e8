// SPDX-License-Identifier: Apache-2.0
#include "cli/import_report.h"

#include <algorithm>
#include <map>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/symbolize_report.h"
#include "report/table.h"

namespace culprit::cli {
namespace {

using report::Table;

constexpr size_t kMaxRows = 100;
constexpr uint64_t kFewUnnamed = 10;  // one in so many frames is worth a word

struct Skipped {
  uint64_t count = 0;
  uint64_t traces = 0;
  std::string first_input;
};

std::string SkippedText(const std::vector<ImportedTrace>& traces, size_t width, bool color) {
  std::map<std::string, Skipped> rows;
  for (const ImportedTrace& trace : traces) {
    for (const auto& [what, row] : trace.outcome.diagnostics.rows()) {
      Skipped& skipped = rows[what];
      if (skipped.traces++ == 0) skipped.first_input = trace.input;
      skipped.count += row.count;
    }
  }
  if (rows.empty()) return {};
  Table table;
  table.Column("skipped or mended", Table::Align::kLeft)
      .Column("count", Table::Align::kRight)
      .Column("traces", Table::Align::kRight)
      .Column("first in", Table::Align::kLeft, true);
  for (const auto& [what, row] : rows) {
    table.Row({what, FormatCount(row.count), FormatCount(row.traces), row.first_input});
  }
  return "\n" + table.ToText(width, color);
}

}  // namespace

std::string UnnamedText(const std::vector<ImportedTrace>& traces, const std::string& corpus) {
  uint64_t frames = 0;
  uint64_t unnamed = 0;
  uint64_t kernel = 0;
  for (const ImportedTrace& trace : traces) {
    frames += trace.outcome.frames;
    unnamed += trace.outcome.unnamed_frames;
    kernel += trace.outcome.unnamed_kernel_frames;
  }
  if (unnamed == 0 || unnamed < frames / kFewUnnamed) return {};
  std::string text = FormatCount(unnamed) + " of " + FormatCount(frames) +
                     (frames == 1 ? " frame has no name" : " frames have no name");
  if (kernel != 0) {
    text += ", " + FormatCount(kernel) + " of them the kernel's (" +
            std::string(kWhereKernelNamesAre) + ")";
  }
  return text + "; 'culprit symbolize " + corpus + "' tells what each module needs";
}

std::string ImportedText(const std::vector<ImportedTrace>& traces, size_t width, bool color) {
  if (traces.empty()) return {};
  Table table;
  table.Column("file", Table::Align::kLeft, true).Column("format");
  for (const std::string_view header :
       {"events", "threads", "stacks", "waits", "with waker", "skipped"}) {
    table.Column(header, Table::Align::kRight);
  }
  for (size_t i = 0; i < std::min(traces.size(), kMaxRows); ++i) {
    const import_::ImportOutcome& outcome = traces[i].outcome;
    table.Row({traces[i].input, outcome.format, FormatCount(outcome.events),
               FormatCount(outcome.threads), FormatCount(outcome.stacks),
               outcome.waits == 0 ? "-" : FormatCount(outcome.waits),
               FormatShare(static_cast<int64_t>(outcome.waits_with_waker),
                           static_cast<int64_t>(outcome.waits)),
               outcome.diagnostics.empty() ? "-" : FormatCount(outcome.diagnostics.total())});
  }
  std::string text = table.ToText(width, color);
  if (traces.size() > kMaxRows) {
    text += "and " + FormatCount(traces.size() - kMaxRows) + " more\n";
  }
  return text + SkippedText(traces, width, color);
}

std::string ImportedJson(const std::vector<ImportedTrace>& traces,
                         const std::vector<std::string>& failures, uint64_t not_recognised) {
  JsonWriter json;
  json.BeginObject().Key("traces").BeginArray();
  for (const ImportedTrace& trace : traces) {
    const import_::ImportOutcome& outcome = trace.outcome;
    json.BeginObject().Field("input", trace.input).Field("name", trace.name);
    json.Field("already_there", trace.was_there).Field("format", outcome.format);
    json.Field("events", outcome.events).Field("threads", outcome.threads);
    json.Field("stacks", outcome.stacks).Field("waits", outcome.waits);
    json.Field("waits_with_waker", outcome.waits_with_waker);
    json.Field("frames", outcome.frames).Field("unnamed_frames", outcome.unnamed_frames);
    json.Field("instances", outcome.instances).Field("dur_ns", outcome.dur_ns);
    json.Field("has_switches", outcome.has_switches);
    json.Key("skipped").BeginArray();
    for (const auto& [what, row] : outcome.diagnostics.rows()) {
      json.BeginObject().Field("what", what).Field("count", row.count);
      if (row.first_offset) json.Field("first_offset", *row.first_offset);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Key("failures").BeginArray();
  for (const std::string& failure : failures) json.String(failure);
  json.EndArray().Field("not_recognised", not_recognised).EndObject();
  return json.Take() + "\n";
}

}  // namespace culprit::cli
