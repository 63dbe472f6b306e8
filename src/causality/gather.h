// SPDX-License-Identifier: Apache-2.0
//
// GatherEvidence: the Evidence of a corpus or of one trace file, in one pass.
// Traces are read and extracted in parallel, one in memory per thread, and added
// in the order of the catalog. A trace that cannot be read, or that would not fit
// the memory allowed, is named in Evidence::unreadable and skipped.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "causality/extract.h"

namespace culprit::causality {

struct GatherOptions {
  ExtractOptions extract;
  uint64_t max_memory_bytes = 0;  // of one trace in memory; 0: no bound
  size_t jobs = 0;                // threads; 0: all hardware threads
};

// `path` is a corpus folder or a trace file.
Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress);

}  // namespace culprit::causality
