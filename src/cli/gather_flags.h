// SPDX-License-Identifier: Apache-2.0
//
// The flags of every command that reads all traces of a corpus: how much memory
// traces may take, and whether summaries are used (corpus/gather.h). And what to
// tell the user about summaries afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/command.h"
#include "corpus/gather.h"

namespace culprit::cli {

// --memory, --no-summaries.
std::vector<Flag> GatherFlags();

struct GatherBounds {
  uint64_t memory_bytes = 0;     // of traces and rows in memory at a time
  uint64_t max_trace_bytes = 0;  // of one; larger ones are skipped
  bool use_summaries = true;
};
// --memory, or a quarter of the machine's.
Result<uint64_t> ReadMemoryFlag(const Arguments& arguments);
// The same, and --no-summaries; without --memory one trace may take three quarters.
Result<GatherBounds> ReadGatherFlags(const Arguments& arguments);

// One line where summaries could not be kept.
void NoteGathered(const corpus::GatherReport& report, Output& output);

}  // namespace culprit::cli
