// SPDX-License-Identifier: Apache-2.0
//
// PerfRecorder: a recording by perf events alone, where kernel programs cannot
// be used. Records go through the importer of perf.data, as they come, into the
// same assembler. There is no governor and no flight recorder: what it costs is
// what the events cost. Used once. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "assemble/assembler.h"
#include "base/result.h"
#include "import/perf_data_facts.h"
#include "import/perf_data_queue.h"
#include "record/child_process.h"
#include "record/file_target.h"
#include "record/perf_events.h"
#include "record/process_scan.h"
#include "record/recorder.h"

namespace culprit::record {

class PerfRecorder {
 public:
  // Options and listener outlive the recorder; tier is one of the two of perf.
  PerfRecorder(const RecordOptions& options, const RecordListener& listener, Tier tier);

  // As BpfRecorder's.
  Status Prepare();
  Result<RecordOutcome> Run();

 private:
  Status Open();
  void FillHead();
  void Know(const ProcessEntry& process);
  void Synthesize(uint32_t type, std::string body);
  Status Tick();
  Status Loop();
  bool IsOver(int64_t begin_ns);
  Status Finish();

  const RecordOptions& options_;
  const RecordListener& listener_;
  Tier tier_;
  std::unique_ptr<FileTarget> file_;
  std::optional<ChildProcess> child_;
  std::unique_ptr<PerfEvents> events_;
  std::unique_ptr<assemble::Assembler> assembler_;
  std::unique_ptr<import_::PerfDataFacts> facts_;
  std::unique_ptr<import_::PerfDataQueue> queue_;
  uint64_t offset_ = 0;
  RecordOutcome outcome_;
};

}  // namespace culprit::record
