// SPDX-License-Identifier: Apache-2.0
//
// Linux perf's own files, from `perf record` (file and pipe mode, either byte
// order, compressed or not, cut anywhere) and simpleperf. Three steps: what the
// file says about itself (perf_data_session.h), its records put into order of
// time (perf_data_stream.h, perf_data_queue.h), and facts made of them
// (perf_data_facts.h). Memory is the queue's bound, the distinct stacks, the
// maps of live processes and a fixed rest, whatever the length of the file.
#include <algorithm>
#include <string>

#include "assemble/assembler.h"
#include "import/importers.h"
#include "import/perf_data_facts.h"
#include "import/perf_data_queue.h"
#include "import/perf_data_session.h"
#include "import/perf_data_stream.h"

namespace culprit::import_ {
namespace {

Match SniffPerfData(const Source& source, std::string_view head) {
  return !source.is_folder() && IsPerfData(head) ? Match::kCertain : Match::kNo;
}

std::string ClockName(const PerfSession& session) {
  for (const PerfAttr& attr : session.attrs.all()) {
    if (!attr.use_clock_id) continue;
    switch (attr.clock_id) {
      case 0:
        return "realtime";
      case 1:
        return "monotonic";
      case 4:
        return "monotonic_raw";
      case 7:
        return "boottime";
      default:
        return "clock " + std::to_string(attr.clock_id);
    }
  }
  return "perf";
}

void FillMetadata(const PerfSession& session, trace::Metadata& metadata) {
  metadata.source = session.simpleperf.empty() ? "perf.data" : "simpleperf perf.data";
  if (!session.perf_version.empty()) metadata.source += " " + session.perf_version;
  metadata.machine = session.hostname;
  metadata.os = "Linux";
  metadata.kernel = session.os_release;
  metadata.arch = session.arch;
  metadata.cpus = std::min<uint32_t>(session.cpus, UINT16_MAX);
  metadata.clock = ClockName(session);
  if (!session.command_line.empty()) metadata.properties["command_line"] = session.command_line;
}

// In pipe mode, and for formats in what simpleperf writes, the descriptions are
// records among the others; those of build-ids come last, though they are
// needed first.
Status ReadDescriptions(const Source& source, PerfSession& session, Diagnostics& diagnostics) {
  Diagnostics ignored;  // the second pass meets the same damage
  PerfDataStream stream(source.bytes(), session.data_begin, session.data_end, session.big, ignored);
  return stream.Visit(
      [&](const PerfRecordView& record) -> Status {
        AddPerfRecord(record, session, diagnostics);
        return {};
      },
      false);
}

// Usually all events have their time at the same place, and which one a sample
// is of need not be known yet.
bool HasOneTimePlace(const PerfAttrs& attrs) {
  constexpr uint64_t kBefore = kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime;
  return std::all_of(attrs.all().begin(), attrs.all().end(), [&](const PerfAttr& attr) {
    return ((attr.sample_type ^ attrs.all().front().sample_type) & kBefore) == 0;
  });
}

uint64_t RecordTime(const PerfSession& session, const PerfRecordView& record, bool one_place) {
  const bool big = session.big;
  if (record.type == kRecordSample) {
    if (one_place) return PerfSampleTime(session.attrs.all().front(), record.body, big);
    const PerfAttr& attr = session.attrs.all()[session.attrs.OfSample(record.body, big)];
    return PerfSampleTime(attr, record.body, big);
  }
  const PerfAttr& attr = session.attrs.all()[session.attrs.OfRecord(record.body, big)];
  return ParsePerfSampleId(attr, record.body, big).time;
}

Status ReadRecords(const Source& source, const PerfSession& session, PerfDataFacts& facts,
                   Diagnostics& diagnostics) {
  PerfDataQueue queue(
      [&](uint64_t time, const PerfRecordView& record) { return facts.Feed(time, record); });
  const bool one_place = HasOneTimePlace(session.attrs);
  PerfDataStream stream(source.bytes(), session.data_begin, session.data_end, session.big,
                        diagnostics);
  CULPRIT_TRY(stream.Visit([&](const PerfRecordView& record) -> Status {
    if (record.type == kRecordFinishedRound) return queue.EndRound();
    if (record.type >= kRecordKernelEnd) return {};
    facts.Preview(record);
    const uint64_t time = RecordTime(session, record, one_place);
    // What has no time describes the state before the recording.
    if (time == 0 || time == UINT64_MAX) return facts.Feed(0, record);
    return queue.Add(time, record);
  }));
  return queue.Finish();
}

Status ReadPerfData(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                    Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(PerfSession session, ReadPerfHeader(source, diagnostics));
  if (session.pipe || (!session.simpleperf.empty() && session.formats.empty())) {
    CULPRIT_TRY(ReadDescriptions(source, session, diagnostics));
  }
  if (session.attrs.empty()) {
    return Error{.message = "a perf.data file without a description of its events",
                 .file = source.name(),
                 .offset = 0,
                 .hint = "the recording was cut too early; record it again"};
  }
  FillMetadata(session, writer.metadata());
  assemble::Assembler assembler(writer);
  PerfDataFacts facts(session, options, writer, assembler, diagnostics);
  CULPRIT_TRY(ReadRecords(source, session, facts, diagnostics));
  facts.Finish();
  CULPRIT_TRY(assembler.Finish());
  diagnostics.Merge(assembler.diagnostics());
  trace::Metadata& metadata = writer.metadata();
  if (session.wall_clock_ns != 0) {
    metadata.wall_start_ns =
        static_cast<int64_t>(session.wall_clock_ns - session.clock_ns) + metadata.begin_ns;
  }
  return {};
}

}  // namespace

Importer PerfDataImporter() {
  return {.name = "perf.data",
          .summary = "Linux perf record, file and pipe mode; simpleperf",
          .sniff = SniffPerfData,
          .read = ReadPerfData};
}

}  // namespace culprit::import_
