// SPDX-License-Identifier: Apache-2.0
//
// GatherParts: what an analysis takes from each trace of a corpus, or from one
// trace file, added up. Traces are read and reduced in parallel, one in memory
// per thread, and added in the order of the catalog, so the sum does not depend
// on the number of threads. A trace that cannot be read, or that would not fit
// the memory allowed, is named in Part::unreadable and skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "trace/trace_reader.h"

namespace culprit::corpus {

struct GatherBounds {
  uint64_t bytes_an_event = 0;    // that the analysis needs, about
  uint64_t max_memory_bytes = 0;  // of one trace in memory; 0: no bound
  size_t jobs = 0;                // threads; 0: all hardware threads
};

// reduce(trace, name) gives a Part; it is called from several threads.
template <class Part, class Reduce>
Part ReducePart(const std::string& path, const std::string& name, const GatherBounds& bounds,
                const Reduce& reduce) {
  const auto unreadable = [&](const std::string& why) {
    Part part;
    part.unreadable.push_back(name + ": " + why);
    return part;
  };
  auto reader = trace::TraceReader::Open(path);
  if (!reader.ok()) return unreadable(reader.error().ToString());
  const uint64_t events = reader.value().events();
  const uint64_t bytes = events * bounds.bytes_an_event;
  if (bounds.max_memory_bytes != 0 && bytes > bounds.max_memory_bytes) {
    return unreadable("its " + FormatCount(events) + " events need about " + FormatBytes(bytes) +
                      " of memory, allowed are " + FormatBytes(bounds.max_memory_bytes));
  }
  const trace::Trace trace = std::move(reader).value().ReadAll();
  if (trace.events.empty() && !trace.diagnostics.empty()) {
    return unreadable("not one event could be read: the file is cut off or damaged");
  }
  return reduce(trace, name);
}

// `path` is a corpus folder or a trace file; add(part, sum) appends a part.
template <class Part, class Reduce, class Add>
Result<Part> GatherParts(const std::string& path, const GatherBounds& bounds, const Reduce& reduce,
                         const Add& add, Progress& progress) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) {
    // Opened once more by ReducePart; here to give the error as what it is.
    CULPRIT_TRY(trace::TraceReader::Open(path));
    return ReducePart<Part>(path, path, bounds, reduce);
  }
  CULPRIT_ASSIGN(const Corpus corpus, Corpus::Open(path));
  CULPRIT_ASSIGN(const std::vector<TraceRow> rows, corpus.List());
  uint64_t events = 0;
  for (const TraceRow& row : rows) events += row.events;
  Part sum;
  const size_t jobs = bounds.jobs == 0 ? HardwareThreads() : bounds.jobs;
  // Enough to keep every thread busy, few enough that waiting parts stay small.
  const size_t batch = jobs * 8;
  progress.Start("reading", "events", events);
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    std::vector<Part> parts(std::min(batch, rows.size() - begin));
    ParallelFor(parts.size(), jobs, [&](size_t i) {
      const TraceRow& row = rows[begin + i];
      parts[i] = ReducePart<Part>(corpus.TracePath(row), row.name, bounds, reduce);
      progress.Advance(row.events);
    });
    for (const Part& part : parts) add(part, sum);
  }
  progress.Finish();
  return sum;
}

}  // namespace culprit::corpus
