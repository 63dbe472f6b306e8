// SPDX-License-Identifier: Apache-2.0
//
// A speedscope file (https://www.speedscope.app/file-format-schema.json): one
// sampled profile a thread that has events of the chosen kind, all sharing one
// list of frames. A sample is a distinct stack, its weight the total of its
// events in nanoseconds (of unwaits: their number). Samples are ordered by
// their frames, so the time order view is a flame graph too. Events without a
// stack are the frames [not sampled] and [no stack]: the weights of a profile
// sum to its endValue, those of all profiles to the total of the kind.
#include <algorithm>

#include "base/json_writer.h"
#include "export/chunked_sink.h"
#include "export/event_walk.h"
#include "export/stack_totals.h"

namespace culprit::export_ {
namespace {

using trace::Dictionary;

Status WriteFrames(const Dictionary& d, ChunkedSink& out) {
  JsonWriter json(JsonWriter::Style::kCompact);
  for (size_t i = 0; i < d.frames().size(); ++i) {
    const trace::Frame& frame = d.frames()[i];
    json.BeginObject().Field("name", d.FrameName(trace::FrameId(i)));
    if (frame.file.valid()) json.Field("file", d.Text(frame.file));
    if (frame.line != 0) json.Field("line", frame.line);
    json.EndObject();
    CULPRIT_TRY(out.Write(json.Take() + ",\n"));
  }
  // The last two stand for stacks that are not there.
  return out.Write("{\"name\":\"[not sampled]\"},\n{\"name\":\"[no stack]\"}");
}

struct Sample {
  std::vector<uint32_t> frames;
  int64_t weight = 0;
};

std::vector<Sample> SamplesOf(const Dictionary& d, const StackTotals& totals, size_t first,
                              size_t end) {
  std::vector<Sample> samples;
  for (size_t i = first; i < end; ++i) {
    const StackTotal& row = totals.rows[i];
    Sample& sample = samples.emplace_back();
    sample.weight = totals.Value(row);
    if (!PseudoStackName(row.stack).empty()) {
      sample.frames = {static_cast<uint32_t>(d.frames().size() + (row.stack - kNotSampledStack))};
      continue;
    }
    for (trace::FrameId frame : d.StackFrames(trace::StackId(row.stack))) {
      sample.frames.push_back(frame.value);
    }
  }
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.frames < b.frames; });
  return samples;
}

Status WriteProfile(std::string_view name, std::string_view unit,
                    const std::vector<Sample>& samples, ChunkedSink& out) {
  int64_t total = 0;
  for (const Sample& sample : samples) total = AddSaturated(total, sample.weight);
  JsonWriter json(JsonWriter::Style::kCompact);
  json.String(name);
  CULPRIT_TRY(out.Write(
      "{\"type\":\"sampled\",\"name\":" + json.Take() + ",\"unit\":\"" + std::string(unit) +
      "\",\"startValue\":0,\"endValue\":" + std::to_string(total) + ",\n\"samples\":["));
  for (size_t i = 0; i < samples.size(); ++i) {
    std::string line = i == 0 ? "[" : ",\n[";
    for (size_t k = 0; k < samples[i].frames.size(); ++k) {
      if (k != 0) line += ',';
      line += std::to_string(samples[i].frames[k]);
    }
    CULPRIT_TRY(out.Write(line + "]"));
  }
  CULPRIT_TRY(out.Write("],\n\"weights\":["));
  for (size_t i = 0; i < samples.size(); ++i) {
    CULPRIT_TRY(out.Write((i == 0 ? "" : ",") + std::to_string(samples[i].weight)));
  }
  return out.Write("]}");
}

Status WriteProfiles(const Dictionary& d, const StackTotals& totals, ChunkedSink& out) {
  const std::string_view unit = totals.counts_events() ? "none" : "nanoseconds";
  size_t profiles = 0, heaviest = 0;
  int64_t heaviest_total = -1;
  for (size_t first = 0; first < totals.rows.size();) {
    const trace::ThreadId thread = totals.rows[first].thread;
    size_t end = first;
    int64_t total = 0;
    for (; end < totals.rows.size() && totals.rows[end].thread == thread; ++end) {
      total = AddSaturated(total, totals.Value(totals.rows[end]));
    }
    if (total > heaviest_total) {
      heaviest_total = total;
      heaviest = profiles;
    }
    if (profiles++ != 0) CULPRIT_TRY(out.Write(",\n"));
    CULPRIT_TRY(WriteProfile(d.ThreadLabel(thread), unit, SamplesOf(d, totals, first, end), out));
    first = end;
  }
  // A file without a profile is not accepted.
  if (profiles == 0) CULPRIT_TRY(WriteProfile("no such events", unit, {}, out));
  return out.Write("],\n\"activeProfileIndex\":" + std::to_string(heaviest));
}

}  // namespace

Result<Summary> ExportSpeedscope(const trace::TraceReader& reader, const Options& options,
                                 const Sink& sink) {
  CULPRIT_ASSIGN(StackTotals totals, SumByStack(reader, options, true));
  const Dictionary& d = reader.dictionary();
  ChunkedSink out(sink);
  JsonWriter name(JsonWriter::Style::kCompact);
  name.String(std::string(trace::Name(totals.kind)) + " by thread" +
              (reader.metadata().machine.empty() ? "" : ", " + reader.metadata().machine));
  CULPRIT_TRY(out.Write(
      "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
      "\"name\":" +
      name.Take() + ",\"exporter\":\"culprit " CULPRIT_VERSION "\",\n\"shared\":{\"frames\":[\n"));
  CULPRIT_TRY(WriteFrames(d, out));
  CULPRIT_TRY(out.Write("]},\n\"profiles\":[\n"));
  CULPRIT_TRY(WriteProfiles(d, totals, out));
  CULPRIT_TRY(out.Write("}\n"));
  CULPRIT_TRY(out.Flush());
  return totals.summary;
}

}  // namespace culprit::export_
