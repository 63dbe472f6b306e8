// SPDX-License-Identifier: Apache-2.0
//
// Linux perf's own files, from `perf record` (file and pipe mode, either byte
// order, compressed or not, cut anywhere) and simpleperf. Three steps: what the
// file says about itself (perf_data_session.h), its records put into order of
// time (perf_data_stream.h, perf_data_queue.h), and facts made of them
// (perf_data_facts.h); of a folder by perf record --threads likewise. Memory is the queue's bound,
// the distinct stacks, the maps of live processes and a fixed rest, whatever the length of the
// file.
#include <algorithm>
#include <string>
#include <vector>

#include "assemble/assembler.h"
#include "import/importers.h"
#include "import/perf_data_facts.h"
#include "import/perf_data_queue.h"
#include "import/perf_data_session.h"
#include "import/perf_data_stream.h"

namespace culprit::import_ {
namespace {

Match SniffPerfData(const Source& source, std::string_view head) {
  if (!source.is_folder()) return IsPerfData(head) ? Match::kCertain : Match::kNo;
  std::string begin;
  const Bytes* data = source.Find("data");
  if (data == nullptr || !data->ReadAt(0, 8, begin).ok()) return Match::kNo;
  return IsPerfData(begin) ? Match::kCertain : Match::kNo;
}

// The file that describes a recording: itself, or in a folder `data`.
Source HeadOf(const Source& source) {
  for (const SourceFile& file : source.files()) {
    if (file.path == "data") return Source(source.name() + "/data", {{"", file.bytes}});
  }
  return source;
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

// perf record --threads writes a folder: `data`, a whole perf.data without
// samples, and data.0, data.1, ... with the records that each of its threads
// read. They are in no order to each other and too many to be sorted at once,
// so they are read again for each span of time that the queue can hold.
class RecordedByThreads {
 public:
  RecordedByThreads(const Source& folder, const PerfSession& session, Diagnostics& diagnostics)
      : session_(session), diagnostics_(diagnostics) {
    for (const SourceFile& file : folder.files()) {
      const bool head = file.path == "data";
      if (!head && !file.path.starts_with("data.")) continue;
      parts_.push_back({file.bytes.get(), head ? session.data_begin : 0,
                        head ? session.data_end : file.bytes->size()});
      total_bytes_ += parts_.back().end - parts_.back().begin;
    }
  }

  Status Read(PerfDataFacts& facts) {
    const bool one_place = HasOneTimePlace(session_.attrs);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    CULPRIT_TRY(Visit(diagnostics_, [&](const PerfRecordView& record) -> Status {
      facts.Preview(record);
      const uint64_t time = RecordTime(session_, record, one_place);
      if (time == 0 || time == UINT64_MAX) return facts.Feed(0, record);
      first = std::min(first, time);
      last = std::max(last, time);
      return {};
    }));
    if (first > last) return {};
    const uint64_t spans = std::clamp<uint64_t>(total_bytes_ / (kMaxQueueBytes / 4), 1, kMaxSpans);
    const uint64_t step = (last - first) / spans + 1;
    PerfDataQueue queue(
        [&](uint64_t time, const PerfRecordView& record) { return facts.Feed(time, record); });
    for (uint64_t begin = first; begin <= last && begin >= first; begin += step) {
      Diagnostics ignored;  // the first reading met the same damage
      CULPRIT_TRY(Visit(ignored, [&](const PerfRecordView& record) -> Status {
        const uint64_t time = RecordTime(session_, record, one_place);
        const bool mine = time >= begin && time - begin < step && time != 0 && time != UINT64_MAX;
        return mine ? queue.Add(time, record) : Status();
      }));
      CULPRIT_TRY(queue.Finish());
    }
    return {};
  }

 private:
  static constexpr uint64_t kMaxSpans = 256;
  struct Part {
    const Bytes* bytes;
    uint64_t begin;
    uint64_t end;
  };

  Status Visit(Diagnostics& diagnostics, const PerfDataStream::Visitor& visitor) {
    for (const Part& part : parts_) {
      PerfDataStream stream(*part.bytes, part.begin, part.end, session_.big, diagnostics);
      CULPRIT_TRY(stream.Visit([&](const PerfRecordView& record) -> Status {
        return record.type < kRecordKernelEnd ? visitor(record) : Status();
      }));
    }
    return {};
  }

  const PerfSession& session_;
  Diagnostics& diagnostics_;
  std::vector<Part> parts_;
  uint64_t total_bytes_ = 0;
};

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

Status ReadPerfData(const Source& input, const ImportOptions& options, trace::TraceWriter& writer,
                    Diagnostics& diagnostics) {
  const Source source = HeadOf(input);
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
  session.file_symbols.Build();
  FillMetadata(session, writer.metadata());
  assemble::Assembler assembler(writer);
  PerfDataFacts facts(session, options, writer, assembler, diagnostics);
  if (input.is_folder()) {
    CULPRIT_TRY(RecordedByThreads(input, session, diagnostics).Read(facts));
  } else {
    CULPRIT_TRY(ReadRecords(source, session, facts, diagnostics));
  }
  CULPRIT_TRY(facts.Finish());
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
