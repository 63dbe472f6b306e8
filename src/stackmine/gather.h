// SPDX-License-Identifier: Apache-2.0
//
// GatherEvidence: the Evidence of a corpus or of one trace file, by the loop over
// traces that all analyses share (corpus/gather.h). What was extracted of a trace
// of a corpus is kept there as a summary of kind "mine" and found again by any
// command with the same ReduceOptions. The result does not depend on the number of
// threads, nor on which summaries there were. A trace that cannot be read, or that
// would not fit the memory allowed, is named in Evidence::unreadable and skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "corpus/gather.h"
#include "stackmine/evidence.h"
#include "stackmine/reduce.h"

namespace culprit::stackmine {

struct GatherOptions {
  ReduceOptions reduce;
  uint64_t max_memory_bytes = 0;  // of one trace in memory; 0: no bound
  size_t jobs = 0;                // threads; 0: all hardware threads
  uint64_t memory_bytes = 0;      // of traces and rows in memory at a time; 0: no bound
  bool use_summaries = true;      // of a corpus

  corpus::GatherOptions loop() const {
    return {.max_trace_bytes = max_memory_bytes,
            .memory_bytes = corpus::TraceShare(memory_bytes),
            .jobs = jobs,
            .use_summaries = use_summaries};
  }
  SpillOptions spill() const { return {.memory_bytes = corpus::RowShare(memory_bytes)}; }
};

class EvidenceCollector final : public corpus::PartCollector<Evidence> {
 public:
  // Rows of the sum beyond `spill` go to disk.
  explicit EvidenceCollector(ReduceOptions options, SpillOptions spill = {});

  uint64_t bytes_an_event() const override;
  void AddUnreadable(const std::string& line) override;
  void Report(corpus::GatherReport& report) const override;
  Evidence Take() { return std::move(sum_); }

 protected:
  Evidence ExtractPart(corpus::TraceViews& views) const override;
  std::string EncodePart(const Evidence& part) const override;
  std::optional<Evidence> DecodePart(std::string_view bytes) const override;
  void AddPart(Evidence part, const std::string& trace_name) override;

 private:
  const ReduceOptions options_;
  Evidence sum_;
};

// `path` is a corpus folder or a trace file.
Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress, corpus::GatherReport* report = nullptr);

}  // namespace culprit::stackmine
