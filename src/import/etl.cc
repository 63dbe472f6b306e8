// SPDX-License-Identifier: Apache-2.0
//
// Event Tracing for Windows: log files of the kernel logger as xperf, WPR and
// PerfView write them, from 32- and 64-bit Windows, plain or with compressed
// buffers, cut anywhere. Read twice: a survey of what comes late in the file
// (etl_survey.h), then the events in order of time (etl_merge.h), of which facts
// are made (etl_facts.h). Memory is the survey's and a buffer a CPU.
#include <algorithm>
#include <string>

#include "assemble/assembler.h"
#include "import/etl_facts.h"
#include "import/etl_file.h"
#include "import/etl_merge.h"
#include "import/etl_survey.h"
#include "import/importers.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kEtlUnixEpoch100Ns = 116'444'736'000'000'000;  // since 1601
constexpr uint64_t kEtlLatestStart100Ns = kEtlUnixEpoch100Ns + 60'000'000'000'000'000;
constexpr int64_t kMaxEtlPeriodNs = 10'000'000'000;

Match SniffEtl(const Source& source, std::string_view head) {
  return !source.is_folder() && IsEtl(head) ? Match::kCertain : Match::kNo;
}

std::string_view EtlClockName(EtlClockType clock) {
  switch (clock) {
    case EtlClockType::kSystemTime:
      return "system time";
    case EtlClockType::kCpuCycles:
      return "cpu cycles";
    default:
      return "performance counter";
  }
}

std::string EtlArchOf(const EtlHeader& header, const EtlSurvey& survey) {
  if (survey.build.find(".arm64fre") != std::string::npos) return "aarch64";
  if (survey.build.find(".amd64fre") != std::string::npos) return "x86_64";
  if (survey.build.find(".x86fre") != std::string::npos || header.pointer_bytes == 4) return "x86";
  return {};
}

int64_t EtlPeriodNs(const EtlHeader& header, const EtlSurvey& survey,
                    const ImportOptions& options) {
  int64_t period_ns = int64_t{survey.interval_100ns} * 100;
  if (survey.samples == 0 && survey.cycle_samples != 0) {
    const uint32_t mhz = survey.cpu_mhz != 0 ? survey.cpu_mhz : header.cpu_mhz;
    period_ns = mhz == 0 ? 0 : int64_t{survey.interval_cycles} * 1000 / mhz;
  }
  return period_ns > 0 && period_ns <= kMaxEtlPeriodNs ? period_ns : options.default_period_ns;
}

void FillEtlMetadata(const EtlHeader& header, const EtlSurvey& survey, const ImportOptions& options,
                     trace::Metadata& metadata) {
  metadata.source = "ETW";
  metadata.machine = survey.machine;
  const std::string version = std::to_string(header.os_major) + "." +
                              std::to_string(header.os_minor) + "." +
                              std::to_string(header.os_build);
  metadata.os = survey.product.empty() ? "Windows " + version : survey.product;
  metadata.kernel = survey.build.empty() ? version : survey.build;
  metadata.arch = EtlArchOf(header, survey);
  metadata.clock = EtlClockName(header.clock);
  metadata.cpus = std::min(header.cpus, kMaxCpus);
  if (!header.logger.empty()) metadata.properties["logger"] = header.logger;
  if (header.events_lost != 0) {
    metadata.properties["drops.events"] = std::to_string(header.events_lost);
  }
  if (survey.samples != 0 || survey.cycle_samples != 0) {
    metadata.sample_period_ns = EtlPeriodNs(header, survey, options);
  }
}

Status ReadEtl(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
               Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const EtlHeader header, ReadEtlHeader(source));
  CULPRIT_ASSIGN(const std::vector<EtlBuffer> buffers,
                 ListEtlBuffers(source.bytes(), header, diagnostics));
  CULPRIT_ASSIGN(const EtlSurvey survey, SurveyEtl(source.bytes(), header, buffers, diagnostics));
  if (header.events_lost != 0) {
    diagnostics.Count("event that the recorder lost", header.events_lost);
  }
  if (header.buffers_lost != 0) {
    diagnostics.Count("buffer that the recorder lost", header.buffers_lost);
  }
  trace::Metadata& metadata = writer.metadata();
  FillEtlMetadata(header, survey, options, metadata);
  assemble::Assembler assembler(writer);
  EtlFacts facts(header, survey, options, writer, assembler, diagnostics);
  facts.Begin();
  CULPRIT_TRY(VisitEtlFacts(
      source.bytes(), header, buffers, survey.spans,
      [&](const EtlEvent& event, uint64_t offset) { return facts.Feed(event, offset); }));
  CULPRIT_TRY(facts.Finish());
  CULPRIT_TRY(assembler.Finish());
  CULPRIT_TRY(facts.MarkProcesses());
  diagnostics.Merge(assembler.diagnostics());
  if (header.start_time > kEtlUnixEpoch100Ns && header.start_time < kEtlLatestStart100Ns) {
    const uint64_t since_epoch = header.start_time - kEtlUnixEpoch100Ns;
    metadata.wall_start_ns = static_cast<int64_t>(since_epoch * 100) + metadata.begin_ns;
  }
  return {};
}

}  // namespace

Importer EtlImporter() {
  return {.name = "etl",
          .summary = "Event Tracing for Windows, xperf, WPR, PerfView",
          .sniff = SniffEtl,
          .read = ReadEtl};
}

}  // namespace culprit::import_
