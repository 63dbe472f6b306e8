// SPDX-License-Identifier: Apache-2.0
#include "corpus/catalog_entry.h"

#include <algorithm>

#include "base/file.h"
#include "trace/trace_reader.h"

namespace culprit::corpus {
namespace {

// Times of a damaged or hostile file can be anything.
int64_t SpanNs(int64_t begin_ns, int64_t end_ns) {
  int64_t span_ns = 0;
  if (__builtin_sub_overflow(end_ns, begin_ns, &span_ns))
    return end_ns > begin_ns ? INT64_MAX : INT64_MIN;
  return span_ns;
}

void CountFromIndex(const trace::TraceReader& reader, TraceRow& row) {
  for (const trace::BlockInfo& block : reader.blocks()) {
    for (size_t kind = 0; kind < trace::kEventKinds; ++kind)
      row.kind_counts[kind] += block.kind_counts[kind];
  }
}

void CountFromEvents(const trace::TraceReader& reader, CatalogEntry& entry) {
  std::vector<trace::Event> events;
  for (size_t i = 0; i < reader.blocks().size(); ++i) {
    if (!reader.ReadBlock(i, events).ok()) {
      ++entry.row.damaged_blocks;
      entry.diagnostics.Count("block that cannot be decoded", 1, reader.blocks()[i].offset);
      continue;
    }
    for (const trace::Event& event : events)
      ++entry.row.kind_counts[static_cast<size_t>(event.kind)];
  }
}

std::vector<InstanceRow> DescribeInstances(const trace::TraceReader& reader) {
  const trace::Dictionary& dictionary = reader.dictionary();
  std::vector<InstanceRow> rows;
  rows.reserve(reader.instances().size());
  for (const trace::Instance& instance : reader.instances()) {
    InstanceRow row{.index = static_cast<uint32_t>(rows.size()),
                    .scenario = std::string(dictionary.Text(instance.scenario)),
                    .t0_ns = instance.t0_ns,
                    .t1_ns = instance.t1_ns,
                    .dur_ns = SpanNs(instance.t0_ns, instance.t1_ns)};
    if (instance.thread.value < dictionary.threads().size()) {
      const trace::Thread& thread = dictionary.threads()[instance.thread.value];
      row.tid = thread.tid;
      row.thread_name = dictionary.Text(thread.name);
      if (thread.process.value < dictionary.processes().size())
        row.process_name = dictionary.Text(dictionary.processes()[thread.process.value].name);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void CopyMetadata(const trace::Metadata& metadata, TraceRow& row) {
  row.begin_ns = metadata.begin_ns;
  row.end_ns = metadata.end_ns;
  row.dur_ns = SpanNs(metadata.begin_ns, metadata.end_ns);
  row.cpus = metadata.cpus;
  row.has_switches = metadata.has_switches;
  row.has_wakers = metadata.has_wakers;
  row.machine = metadata.machine;
  row.os = metadata.os;
  row.kernel = metadata.kernel;
  row.arch = metadata.arch;
  row.app = metadata.app;
  row.app_version = metadata.app_version;
  row.source = metadata.source;
  row.labels = metadata.labels;
}

template <class T>
void Compare(std::string_view what, const T& catalog, const T& file,
             std::vector<std::string>& differences) {
  if (catalog == file) return;
  const auto text = [](const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      return "'" + value + "'";
    } else {
      return std::to_string(value);
    }
  };
  differences.push_back(std::string(what) + ": " + text(catalog) + " in the catalog, " +
                        text(file) + " in the file");
}

}  // namespace

Result<CatalogEntry> MakeCatalogEntry(const std::string& path, BlockCheck check) {
  CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(path));
  CatalogEntry entry;
  TraceRow& row = entry.row;
  CULPRIT_ASSIGN(row.sha256, FileSha256(path));
  row.bytes = reader.file_bytes();
  CopyMetadata(reader.metadata(), row);
  entry.diagnostics.Merge(reader.diagnostics());
  if (check == BlockCheck::kDecode) {
    CountFromEvents(reader, entry);
  } else {
    CountFromIndex(reader, row);
  }
  for (const uint64_t count : row.kind_counts) row.events += count;
  row.threads = reader.dictionary().threads().size();
  entry.instances = DescribeInstances(reader);
  row.instances = entry.instances.size();
  row.complete = reader.complete() && entry.diagnostics.empty();
  row.skipped = entry.diagnostics.total();
  if (!row.complete && row.events == 0 && row.instances == 0) {
    return Error{.message = "is damaged, and none of its events can be read", .file = path};
  }
  return entry;
}

std::vector<std::string> Differences(const TraceRow& catalog, const TraceRow& file) {
  std::vector<std::string> out;
  Compare("events", catalog.events, file.events, out);
  for (size_t kind = 0; kind < trace::kEventKinds; ++kind)
    Compare(std::string(trace::kEventKindNames[kind]) + " events", catalog.kind_counts[kind],
            file.kind_counts[kind], out);
  Compare("begin", catalog.begin_ns, file.begin_ns, out);
  Compare("end", catalog.end_ns, file.end_ns, out);
  Compare("cpus", catalog.cpus, file.cpus, out);
  Compare("threads", catalog.threads, file.threads, out);
  Compare("context switches recorded", int{catalog.has_switches}, int{file.has_switches}, out);
  Compare("wakers recorded", int{catalog.has_wakers}, int{file.has_wakers}, out);
  Compare("unreadable blocks", catalog.damaged_blocks, file.damaged_blocks, out);
  Compare("machine", catalog.machine, file.machine, out);
  Compare("os", catalog.os, file.os, out);
  Compare("kernel", catalog.kernel, file.kernel, out);
  Compare("arch", catalog.arch, file.arch, out);
  Compare("app", catalog.app, file.app, out);
  Compare("app version", catalog.app_version, file.app_version, out);
  Compare("source", catalog.source, file.source, out);
  return out;
}

std::vector<std::string> Differences(const std::vector<InstanceRow>& catalog,
                                     const std::vector<InstanceRow>& file) {
  std::vector<std::string> out;
  Compare("instances", catalog.size(), file.size(), out);
  const size_t both = std::min(catalog.size(), file.size());
  // The first instance that differs tells enough; a wrong one is seldom alone.
  for (size_t i = 0; i < both && out.empty(); ++i) {
    const std::string what = "instance " + std::to_string(i) + ", ";
    Compare(what + "index", catalog[i].index, file[i].index, out);
    Compare(what + "scenario", catalog[i].scenario, file[i].scenario, out);
    Compare(what + "tid", catalog[i].tid, file[i].tid, out);
    Compare(what + "thread", catalog[i].thread_name, file[i].thread_name, out);
    Compare(what + "process", catalog[i].process_name, file[i].process_name, out);
    Compare(what + "t0", catalog[i].t0_ns, file[i].t0_ns, out);
    Compare(what + "t1", catalog[i].t1_ns, file[i].t1_ns, out);
    Compare(what + "duration", catalog[i].dur_ns, file[i].dur_ns, out);
  }
  return out;
}

}  // namespace culprit::corpus
