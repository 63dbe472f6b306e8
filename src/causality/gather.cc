// SPDX-License-Identifier: Apache-2.0
#include "causality/gather.h"

#include <algorithm>
#include <filesystem>

#include "base/parallel.h"
#include "base/text.h"
#include "corpus/corpus.h"
#include "trace/trace_reader.h"

namespace culprit::causality {
namespace {

// An event as read, its place in the time lines, and in the graph of an instance that
// has all of them.
constexpr uint64_t kBytesAnEvent = 48 + 32 + 60;

Evidence Unreadable(const std::string& name, const std::string& why) {
  Evidence part;
  part.unreadable.push_back(name + ": " + why);
  return part;
}

Evidence EvidenceOf(const std::string& path, const std::string& name,
                    const GatherOptions& options) {
  auto reader = trace::TraceReader::Open(path);
  if (!reader.ok()) return Unreadable(name, reader.error().ToString());
  const uint64_t events = reader.value().events();
  const uint64_t bytes = events * kBytesAnEvent;
  if (options.max_memory_bytes != 0 && bytes > options.max_memory_bytes) {
    return Unreadable(name, "its " + FormatCount(events) + " events need about " +
                                FormatBytes(bytes) + " of memory, allowed are " +
                                FormatBytes(options.max_memory_bytes));
  }
  const trace::Trace trace = std::move(reader).value().ReadAll();
  if (trace.events.empty() && !trace.diagnostics.empty()) {
    return Unreadable(name, "not one event could be read: the file is cut off or damaged");
  }
  return ExtractTrace(trace, name, options.extract);
}

Result<Evidence> OfTrace(const std::string& path, const GatherOptions& options) {
  // Opened once more by EvidenceOf; here to give the error as what it is.
  CULPRIT_TRY(trace::TraceReader::Open(path));
  Evidence evidence = EvidenceOf(path, path, options);
  return evidence;
}

Result<Evidence> OfCorpus(const std::string& folder, const GatherOptions& options,
                          Progress& progress) {
  CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(folder));
  CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
  uint64_t events = 0;
  for (const corpus::TraceRow& row : rows) events += row.events;
  Evidence sum;
  const size_t jobs = options.jobs == 0 ? HardwareThreads() : options.jobs;
  // Enough to keep every thread busy, few enough that waiting parts stay small.
  const size_t batch = jobs * 8;
  progress.Start("reading", "events", events);
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    std::vector<Evidence> parts(std::min(batch, rows.size() - begin));
    ParallelFor(parts.size(), jobs, [&](size_t i) {
      const corpus::TraceRow& row = rows[begin + i];
      parts[i] = EvidenceOf(corpus.TracePath(row), row.name, options);
      progress.Advance(row.events);
    });
    for (const Evidence& part : parts) AddEvidence(part, sum);
  }
  progress.Finish();
  return sum;
}

}  // namespace

Result<Evidence> GatherEvidence(const std::string& path, const GatherOptions& options,
                                Progress& progress) {
  std::error_code code;
  return std::filesystem::is_directory(path, code) ? OfCorpus(path, options, progress)
                                                   : OfTrace(path, options);
}

}  // namespace culprit::causality
