// SPDX-License-Identifier: Apache-2.0
//
// The importer of Common Trace Format folders, versions 1.8 and 2: metadata to
// a schema, streams merged by time, events to facts. Times are those of the
// trace's first clock; where its zero lies since 1970 goes into wall_start_ns.
// Memory: the schema, one packet per stream file in use, the live threads.
#include <algorithm>
#include <map>
#include <optional>

#include "base/file.h"
#include "import/ctf_facts.h"
#include "import/ctf_metadata.h"
#include "import/ctf_reader.h"
#include "import/importers.h"

namespace culprit::import_ {
namespace {

// How far to look in a file for its first switch. Most have one right away; one
// of a channel without switches has none at all.
constexpr uint64_t kLookAhead = 200'000;

Match SniffCtf(const Source& source, std::string_view head) {
  for (const SourceFile& file : source.files()) {
    const std::string_view path = file.path;
    if (path.substr(path.rfind('/') + 1) != "metadata") continue;
    std::string bytes;
    if (!file.bytes->ReadAt(0, kSniffBytes, bytes).ok()) return Match::kNo;
    return LooksLikeCtfMetadata(bytes) ? Match::kCertain : Match::kNo;
  }
  // A metadata file given alone: read() then says what is missing.
  const bool alone = !source.is_folder() && LooksLikeCtfMetadata(head);
  return alone ? Match::kLikely : Match::kNo;
}

CtfDecoder::Wants WantsOfMeaning() {
  return [](const CtfEventClass& event) { return MeaningOf(event.name).wants; };
}

// Who was switched out first on a CPU ran there since the beginning. Events
// before that switch have nothing else to tell whose they are.
void TellWhoRanFirst(const CtfSchema& schema, const std::vector<const SourceFile*>& files,
                     CtfFacts& facts) {
  std::vector<bool> is_switch;
  for (const CtfEventClass& event : schema.events) {
    is_switch.push_back(MeaningOf(event.name).kind == CtfEventKind::kSwitch);
  }
  CtfDecoder decoder(schema, {}, [](const CtfEventClass& event) {
    const CtfEventMeaning meaning = MeaningOf(event.name);
    return meaning.kind == CtfEventKind::kSwitch ? meaning.wants : std::span<const CtfWant>();
  });
  CtfPacketLedger ledger;
  Diagnostics unheeded;  // the reading proper counts the same again
  std::map<uint16_t, std::pair<int64_t, int64_t>> first;  // cpu: time, tid
  for (const SourceFile* source_file : files) {
    CtfStreamFile file(decoder, *source_file, ledger, unheeded);
    for (uint64_t i = 0; i < kLookAhead && file.Next(); ++i) {
      if (!is_switch[file.event_class()]) continue;
      const auto& tid = file.fields()[kSlotTid];
      const std::pair<int64_t, int64_t> seen(file.time_ns(), static_cast<int64_t>(tid.number));
      const auto [it, is_new] = first.emplace(file.cpu(), seen);
      if (tid.seen && !is_new && seen < it->second) it->second = seen;
      break;
    }
  }
  for (const auto& [cpu, seen] : first) facts.Running(cpu, seen.second);
}

std::optional<symbol::KernelSymbols> ReadKallsyms(const ImportOptions& options,
                                                  Diagnostics& diagnostics) {
  if (options.kallsyms.empty()) return std::nullopt;
  const auto text = ReadWholeFile(options.kallsyms);
  if (text.ok()) {
    auto symbols = symbol::KernelSymbols::Parse(text.value());
    if (symbols.ok()) return std::move(symbols).value();
  }
  diagnostics.Count("kernel symbol file that could not be read");
  return std::nullopt;
}

std::string Environment(const CtfSchema& schema, std::string_view key, std::string_view other_key) {
  auto it = schema.environment.find(key);
  if (it == schema.environment.end()) it = schema.environment.find(other_key);
  return it == schema.environment.end() ? std::string() : it->second;
}

void Describe(const CtfSchema& schema, const CtfReader& reader, const CtfFacts& facts,
              trace::Metadata& metadata) {
  metadata.machine = Environment(schema, "hostname", "host");
  metadata.os = Environment(schema, "sysname", "");
  metadata.kernel = Environment(schema, "kernel_release", "release");
  metadata.app = Environment(schema, "procname", "");
  metadata.arch = facts.syscalls().machine();
  std::string tracer = Environment(schema, "tracer_name", "");
  const std::string major = Environment(schema, "tracer_major", "");
  const std::string minor = Environment(schema, "tracer_minor", "");
  if (!tracer.empty() && !major.empty()) tracer += " " + major + (minor.empty() ? "" : "." + minor);
  metadata.source =
      std::string(schema.major == 2 ? "CTF 2" : "CTF 1.8") + (tracer.empty() ? "" : ", " + tracer);
  if (!schema.clocks.empty()) metadata.clock = schema.clocks.front().name;
  metadata.properties["ctf.events"] = std::to_string(facts.events());
  metadata.properties["ctf.events_unused"] = std::to_string(facts.unused());
  metadata.properties["syscalls.table"] = std::string(trace::MachineName(facts.syscalls().table()));
  for (const auto& [cpu, lost] : reader.ledger().lost_by_cpu()) {
    metadata.properties["drops.cpu" + std::to_string(cpu)] = std::to_string(lost);
  }
}

Status ReadCtf(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
               Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(const CtfSchema schema, LoadCtfSchema(source, diagnostics));
  const std::vector<const SourceFile*> files = CtfStreamFiles(source);
  if (files.empty()) {
    return Error{.message = "metadata without a stream file beside it",
                 .file = source.name(),
                 .hint = "import the whole folder, not only its metadata"};
  }
  const std::optional<symbol::KernelSymbols> kernel = ReadKallsyms(options, diagnostics);
  std::optional<symbol::Symbolizer> symbolizer;
  if (options.symbols) symbolizer.emplace(symbol::SymbolizerOptions{.sysroot = options.sysroot});
  assemble::Assembler assembler(writer);
  CtfFacts facts(schema, writer, assembler, kernel ? &*kernel : nullptr,
                 symbolizer ? &*symbolizer : nullptr, diagnostics);
  TellWhoRanFirst(schema, files, facts);
  CtfDecoder decoder(schema, CtfContextWants(), WantsOfMeaning());
  CtfReader reader(decoder, files, diagnostics);
  while (const CtfStreamFile* file = reader.Next()) CULPRIT_TRY(facts.Feed(*file));
  if (facts.events() == 0) {
    return Error{.message = "no event could be read from its streams", .file = source.name()};
  }
  if (reader.backward_steps() != 0) {
    diagnostics.Count("event earlier than the one before it in its stream",
                      reader.backward_steps());
  }
  const bool is_user = Environment(schema, "domain", "") == "ust";
  if (facts.unused() == facts.events() || (is_user && facts.unused() != 0)) {
    diagnostics.Count("event of a kind that the model has no place for", facts.unused());
  }
  CULPRIT_TRY(facts.Finish());
  CULPRIT_TRY(assembler.Finish(facts.last_ns()));
  trace::Metadata& metadata = writer.metadata();
  if (!metadata.has_switches) metadata.begin_ns = facts.first_ns();
  metadata.end_ns = std::max(metadata.end_ns, facts.last_ns());
  Describe(schema, reader, facts, metadata);
  // A clock without an offset counts from boot.
  const bool is_wall = !schema.clocks.empty() && schema.clocks.front().is_wall;
  if (is_wall && decoder.wall_offset_ns() != 0) {
    metadata.wall_start_ns = decoder.wall_offset_ns() + metadata.begin_ns;
  }
  diagnostics.Merge(assembler.diagnostics());
  if (symbolizer) diagnostics.Merge(symbolizer->diagnostics());
  return {};
}

}  // namespace

Importer CtfImporter() {
  return {.name = "ctf",
          .summary = "Common Trace Format 1.8 and 2: LTTng, perf data convert --to-ctf",
          .sniff = SniffCtf,
          .read = ReadCtf};
}

}  // namespace culprit::import_
