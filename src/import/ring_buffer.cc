// SPDX-License-Identifier: Apache-2.0
//
// The importer of raw ring-buffer pages: a folder (or archive) with the
// kernel's format texts and a file of pages for each CPU, as copied from
// tracefs or as SchedViz collects them:
//
//   formats/header_page   formats/SYSTEM/EVENT/format   traces/cpu0 ...
//   events/header_page    events/SYSTEM/EVENT/format
//                         per_cpu/cpu0/trace_pipe_raw ...
//
// kallsyms, saved_cmdlines and trace_clock are used where they lie beside
// these. Pages are taken as little-endian: nothing beside them tells. Memory as
// for trace.dat.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "import/importer.h"
#include "import/importers.h"
#include "import/ring_buffer_stream.h"
#include "symbol/symbolizer.h"

namespace culprit::import_ {
namespace {

constexpr uint64_t kMaxFormat = uint64_t{1} << 20;
constexpr uint64_t kMaxKallsyms = uint64_t{256} << 20;

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// The number in "traces/cpu12" or "per_cpu/cpu12/trace_pipe_raw".
std::optional<uint16_t> CpuOf(std::string_view path) {
  std::string_view name = BaseName(path);
  if (name == "trace_pipe_raw") name = BaseName(FolderOf(path));
  if (!name.starts_with("cpu")) return {};
  const std::optional<uint64_t> cpu = ParseUnsigned(name.substr(3));
  if (!cpu.has_value() || *cpu >= kMaxCpus) return {};
  return static_cast<uint16_t>(*cpu);
}

bool IsTopology(std::string_view path) { return path.find("topology/") != std::string_view::npos; }

std::string TextOf(const Bytes& bytes, uint64_t max_bytes) {
  std::string text;
  const auto count = static_cast<size_t>(std::min(bytes.size(), max_bytes));
  if (!bytes.ReadAt(0, count, text).ok()) text.clear();
  return text;
}

const SourceFile* FindByName(const Source& source, std::string_view name) {
  for (const SourceFile& file : source.files()) {
    if (BaseName(file.path) == name) return &file;
  }
  return nullptr;
}

void AddFormats(const Source& source, TracepointFacts& facts, Diagnostics& diagnostics) {
  for (const SourceFile& file : source.files()) {
    if (BaseName(file.path) != "format") continue;
    const std::string_view system = BaseName(FolderOf(FolderOf(file.path)));
    std::optional<EventFormat> format = ParseEventFormat(TextOf(*file.bytes, kMaxFormat), system);
    if (format.has_value()) {
      facts.AddFormat(*std::move(format));
    } else {
      diagnostics.Count("event format that cannot be read");
    }
  }
}

Match SniffRingBuffer(const Source& source, std::string_view) {
  if (!source.is_folder()) return Match::kNo;
  bool pages = false;
  bool formats = false;
  for (const SourceFile& file : source.files()) {
    pages = pages || (CpuOf(file.path).has_value() && !IsTopology(file.path));
    formats = formats || BaseName(file.path) == "format";
  }
  return pages && formats ? Match::kCertain : Match::kNo;
}

PageLayout LayoutOf(const Source& source) {
  PageLayout layout;
  if (const SourceFile* header = FindByName(source, "header_page")) {
    layout.ReadHeaderPage(TextOf(*header->bytes, kMaxFormat));
  }
  return layout;
}

Result<std::vector<RingStream>> Streams(const Source& source, const PageLayout& layout) {
  std::vector<RingStream> streams;
  for (const SourceFile& file : source.files()) {
    const std::optional<uint16_t> cpu = CpuOf(file.path);
    if (!cpu.has_value() || IsTopology(file.path)) continue;
    streams.emplace_back(*cpu, layout, RingClock(),
                         PlainPages(*file.bytes, 0, file.bytes->size(), layout.page_bytes));
  }
  if (streams.empty()) return Error{.message = "no pages of any CPU", .file = source.name()};
  return streams;
}

Status ReadRingBuffer(const Source& source, const ImportOptions&, trace::TraceWriter& writer,
                      Diagnostics& diagnostics) {
  const PageLayout layout = LayoutOf(source);
  CULPRIT_ASSIGN(std::vector<RingStream> streams, Streams(source, layout));
  std::optional<symbol::KernelSymbols> symbols;
  if (const SourceFile* kallsyms = FindByName(source, "kallsyms")) {
    Result<symbol::KernelSymbols> parsed =
        symbol::KernelSymbols::Parse(TextOf(*kallsyms->bytes, kMaxKallsyms));
    if (parsed.ok()) symbols = std::move(parsed).value();
  }
  assemble::Assembler assembler(writer);
  TracepointFacts facts(writer, assembler, diagnostics, symbols ? &*symbols : nullptr, layout.order,
                        layout.commit_bytes);
  AddFormats(source, facts, diagnostics);
  if (const SourceFile* names = FindByName(source, "saved_cmdlines")) {
    AddThreadNames(TextOf(*names->bytes, kMaxFormat), facts);
  }
  writer.metadata().source = "ftrace ring-buffer pages";
  if (const SourceFile* clock = FindByName(source, "trace_clock")) {
    writer.metadata().clock = ChosenClock(TextOf(*clock->bytes, 4096));
  }
  CULPRIT_TRY(MergeStreams(streams, facts, diagnostics));
  if (!facts.any()) return Error{.message = "no event can be read", .file = source.name()};
  return FinishFacts(facts, assembler, writer, diagnostics);
}

}  // namespace

Importer RingBufferImporter() {
  return {.name = "ring-buffer",
          .summary = "raw per-CPU pages of ftrace with their formats",
          .sniff = SniffRingBuffer,
          .read = ReadRingBuffer};
}

}  // namespace culprit::import_
