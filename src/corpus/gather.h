// SPDX-License-Identifier: Apache-2.0
//
// Gather: the one loop over the traces of a corpus, or over one trace file. Each
// trace is read at most once for all collectors together, and not at all for
// those whose summary of it is in the corpus (summary_store.h). Traces are read
// in parallel and added in the order of the catalog, so sums do not depend on the
// number of threads, nor on which summaries there were.
//
// A trace that cannot be read, that would not fit max_trace_bytes, or whose file
// vanished is named to every collector and skipped. A file that is no longer what
// the catalog says is read as it is, and no summary of it is used or kept.
//
// Memory: traces in memory at a time need at most memory_bytes together, except
// that one is always let through; pieces that wait for their turn are few. What
// collectors add up, they bound themselves: TraceShare, RowShare and TableShare cut
// one bound for all into that of the traces, that of the rows of each of two
// collectors, and that of all tables (base/large_memory.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "corpus/catalog.h"
#include "corpus/collector.h"

namespace culprit::corpus {

struct GatherOptions {
  uint64_t max_trace_bytes = 0;  // of one trace in memory; 0: no bound
  uint64_t memory_bytes = 0;     // of all at a time; 0: no bound
  size_t jobs = 0;               // threads; 0: all hardware threads
  bool use_summaries = true;     // read and keep them, of a corpus
};

// 0 stays 0: no bound.
constexpr uint64_t RowShare(uint64_t memory_bytes) {
  return memory_bytes == 0 ? 0 : memory_bytes / 8 + 1;
}
constexpr uint64_t TableShare(uint64_t memory_bytes) { return RowShare(memory_bytes); }
constexpr uint64_t TraceShare(uint64_t memory_bytes) { return memory_bytes - memory_bytes / 8 * 3; }

// How it went; nothing that results depend on.
struct GatherReport {
  uint64_t traces = 0;
  uint64_t traces_read = 0;       // their files, because a summary was missing
  uint64_t trace_bytes_read = 0;  // sizes of those
  uint64_t summaries_used = 0;
  uint64_t summaries_made = 0;
  uint64_t summary_bytes_read = 0;
  uint64_t summary_bytes_written = 0;
  std::string why_not_kept;         // why summaries could not be written; empty: they could
  uint64_t rows_spilled_bytes = 0;  // and of tables
  std::string why_not_spilled;      // why rows beyond the bound stayed in memory; empty: none did

  void Add(const GatherReport& other);
  void AddSpilled(uint64_t bytes, const std::string& why_not);
};

// `path` is a corpus folder or a trace file.
Result<GatherReport> Gather(const std::string& path, std::span<Collector* const> collectors,
                            const GatherOptions& options, Progress& progress);

// Of these traces of a corpus, in this order, without looking into the catalog:
// name, file, sha256, bytes, events and complete of the rows are used.
GatherReport GatherRows(const std::string& corpus_folder, std::span<const TraceRow> rows,
                        std::span<Collector* const> collectors, const GatherOptions& options,
                        Progress& progress);

}  // namespace culprit::corpus
