// SPDX-License-Identifier: Apache-2.0
//
// The importer of trace-cmd's trace.dat, versions 6 and 7. Memory: the file's
// formats and kallsyms, a page or chunk and two records a CPU.
#include <algorithm>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "import/importers.h"
#include "import/trace_dat_file.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

// "Linux host 5.15.0-50-generic x86_64"
void ReadUname(const std::string& uname, trace::Metadata& metadata) {
  std::istringstream words(uname);
  words >> metadata.os >> metadata.machine >> metadata.kernel >> metadata.arch;
}

// What the kernel says it dropped: "overrun: 12" and "dropped events: 3" in
// the statistics of each CPU.
void ReadDrops(const std::vector<std::string>& stats, trace::Metadata& metadata) {
  for (const std::string& text : stats) {
    std::istringstream lines(text);
    std::string line;
    std::string cpu = "?";
    uint64_t drops = 0;
    while (std::getline(lines, line)) {
      const size_t colon = line.find(": ");
      if (colon == std::string::npos) continue;
      const std::string key = line.substr(0, colon);
      const std::optional<uint64_t> value = ParseUnsigned(line.substr(colon + 2));
      if (!value.has_value() || *value > UINT32_MAX) continue;
      if (key == "CPU") cpu = std::to_string(*value);
      if (key == "overrun" || key == "commit overrun" || key == "dropped events") drops += *value;
    }
    if (drops != 0) metadata.properties["drops.cpu" + cpu] = std::to_string(drops);
  }
}

void Describe(const TraceDatFile& file, trace::Metadata& metadata) {
  metadata.source = "trace.dat v" + std::to_string(file.version);
  if (!file.recorder.empty()) {
    metadata.source += ", trace-cmd " + file.recorder.substr(0, file.recorder.find(' '));
  }
  metadata.clock = file.clock.empty() ? "local" : file.clock;
  ReadUname(file.uname, metadata);
  ReadDrops(file.cpu_stats, metadata);
}

std::optional<symbol::KernelSymbols> Symbols(const std::string& kallsyms,
                                             Diagnostics& diagnostics) {
  if (kallsyms.empty()) return {};
  Result<symbol::KernelSymbols> symbols = symbol::KernelSymbols::Parse(kallsyms);
  if (symbols.ok()) return std::move(symbols).value();
  diagnostics.Count("list of kernel symbols that cannot be read");
  return {};
}

Match SniffTraceDat(const Source& source, std::string_view head) {
  if (source.is_folder()) return Match::kNo;
  return head.starts_with(kTraceDatMagic) ? Match::kCertain : Match::kNo;
}

Status ReadTraceDat(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                    Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(TraceDatFile file, ReadTraceDatFile(source.bytes(), source.name(), diagnostics));
  if (file.kallsyms.empty() && !options.kallsyms.empty()) {
    CULPRIT_ASSIGN(file.kallsyms, ReadWholeFile(options.kallsyms));
  }
  const std::optional<symbol::KernelSymbols> symbols = Symbols(file.kallsyms, diagnostics);
  file.kallsyms = {};
  assemble::Assembler assembler(writer);
  TracepointFacts facts(writer, assembler, diagnostics, symbols ? &*symbols : nullptr,
                        file.layout.order, file.long_bytes);
  for (EventFormat& format : file.formats) facts.AddFormat(std::move(format));
  AddThreadNames(file.cmdlines, facts);
  Describe(file, writer.metadata());
  std::vector<RingStream> streams;
  for (const CpuPages& pages : file.pages) {
    streams.emplace_back(pages.cpu, file.layout, file.ring_clock,
                         PagesOf(source.bytes(), file, pages, diagnostics));
  }
  CULPRIT_TRY(MergeStreams(streams, facts, diagnostics));
  if (!facts.any()) return Error{.message = "no event can be read", .file = source.name()};
  writer.metadata().cpus = file.cpus;
  CULPRIT_TRY(FinishFacts(facts, assembler, writer, diagnostics));
  if (file.wall_offset_ns != 0) {
    writer.metadata().wall_start_ns = writer.metadata().begin_ns + file.wall_offset_ns;
  }
  return {};
}

}  // namespace

Importer TraceDatImporter() {
  return {.name = "trace.dat",
          .summary = "trace-cmd's recordings of ftrace, versions 6 and 7",
          .sniff = SniffTraceDat,
          .read = ReadTraceDat};
}

}  // namespace culprit::import_
