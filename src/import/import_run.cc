// SPDX-License-Identifier: Apache-2.0
#include "import/import_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/text.h"
#include "symbol/frame_naming.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {
namespace {

using trace::Event;
using trace::EventKind;
using trace::TraceReader;
using trace::TraceWriter;

std::string FormatNames() {
  std::string names;
  for (const Importer& importer : Importers()) {
    if (!names.empty()) names += ", ";
    names += importer.name;
  }
  return names;
}

// The first bytes as a person can look them up: hexadecimal and, where they can
// be printed, as characters.
std::string DescribeHead(std::string_view head) {
  if (head.empty()) return "it is empty";
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  std::string text;
  for (const char c : head.substr(0, 8)) {
    const auto byte = static_cast<unsigned char>(c);
    if (!hex.empty()) hex += ' ';
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
    text += byte >= 0x20 && byte < 0x7f ? c : '.';
  }
  return "it begins with " + hex + " '" + text + "'";
}

Result<std::string> ReadHead(const Source& source) {
  std::string head;
  CULPRIT_TRY(source.bytes().ReadAt(0, kSniffBytes, head));
  return head;
}

Result<const Importer*> FindImporter(const std::string& format) {
  std::vector<std::string_view> names;
  for (const Importer& importer : Importers()) {
    if (importer.name == format) return &importer;
    names.push_back(importer.name);
  }
  Error error{.message = "no format is called '" + format + "'"};
  const auto near = Nearest(format, names);
  error.hint = near ? "did you mean '" + std::string(*near) + "'?" : "one of " + FormatNames();
  return error;
}

Status WriteImported(const Source& source, const Importer& importer, const ImportOptions& options,
                     const std::string& path, trace::EventCensus& census,
                     Diagnostics& diagnostics) {
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, Overwrite::kRefuse));
  TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); },
                     {.census = &census});
  CULPRIT_TRY(importer.read(source, options, writer, diagnostics));
  if (writer.events() == 0) {
    return Error{.message = "no events in it that culprit could use",
                 .file = source.name(),
                 .hint = "read as " + std::string(importer.name) + "; --format reads it otherwise"};
  }
  trace::Metadata& metadata = writer.metadata();
  if (metadata.source.empty()) metadata.source = importer.name;
  CULPRIT_TRY(writer.Finish());
  return file.Commit();
}

// The same trace at `to`, with more instances.
Status CopyWithInstances(const TraceReader& reader, const std::vector<FoundInstance>& more,
                         const std::string& to) {
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(to, Overwrite::kRefuse));
  TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  trace::CopyDictionary(reader.dictionary(), writer.dictionary());
  writer.metadata() = reader.metadata();
  for (const trace::Instance& instance : reader.instances()) writer.AddInstance(instance);
  for (const FoundInstance& found : more) {
    writer.AddInstance({.scenario = writer.dictionary().Intern(found.scenario),
                        .thread = found.thread,
                        .t0_ns = found.t0_ns,
                        .t1_ns = found.t1_ns});
  }
  std::vector<Event> events;
  for (size_t block = 0; block < reader.blocks().size(); ++block) {
    CULPRIT_TRY(reader.ReadBlock(block, events));
    for (const Event& event : events) CULPRIT_TRY(writer.Add(event));
  }
  CULPRIT_TRY(writer.Finish());
  return file.Commit();
}

Status AddInstances(const Source& source, const ImportRequest& request, const std::string& path,
                    Diagnostics& diagnostics) {
  if (request.rules.empty() && request.instances.empty()) return {};
  const std::string copy = path + ".instances";
  {
    CULPRIT_ASSIGN(const TraceReader reader, TraceReader::Open(path));
    CULPRIT_ASSIGN(std::vector<FoundInstance> found, FindInstances(reader, request.rules));
    for (FoundInstance& row :
         InstancesFromTable(reader, request.instances, source.name(), diagnostics)) {
      found.push_back(std::move(row));
    }
    if (found.empty()) return {};
    CULPRIT_TRY(CopyWithInstances(reader, found, copy));
  }
  if (::rename(copy.c_str(), path.c_str()) == 0) return {};
  const Error error = ErrnoError("rename", copy);
  ::unlink(copy.c_str());
  return error;
}

Status Describe(const std::string& path, const trace::EventCensus& census, ImportOutcome& outcome) {
  CULPRIT_ASSIGN(const TraceReader reader, TraceReader::Open(path));
  outcome.events = reader.events();
  outcome.instances = reader.instances().size();
  outcome.dur_ns = reader.metadata().end_ns - reader.metadata().begin_ns;
  outcome.has_switches = reader.metadata().has_switches;
  outcome.waits = census.waits;
  outcome.waits_with_waker = census.waits_with_waker;
  outcome.stacks =
      static_cast<uint64_t>(std::count(census.stacks.begin(), census.stacks.end(), true));
  const std::vector<trace::Thread>& rows = reader.dictionary().threads();
  for (size_t i = 0; i < std::min(rows.size(), census.threads.size()); ++i) {
    const bool counts =
        rows[i].kind != trace::ThreadKind::kDevice && rows[i].kind != trace::ThreadKind::kIdle;
    if (counts && census.threads[i]) ++outcome.threads;
  }
  outcome.frames = reader.dictionary().frames().size();
  for (const symbol::UnnamedModule& module : symbol::UnnamedModules(reader.dictionary())) {
    outcome.unnamed_frames += module.frames;
    if (module.kernel) outcome.unnamed_kernel_frames += module.frames;
  }
  return {};
}

}  // namespace

Result<const Importer*> ChooseImporter(const Source& source, const std::string& format) {
  if (!format.empty()) return FindImporter(format);
  CULPRIT_ASSIGN(const std::string head, ReadHead(source));
  const Importer* best = nullptr;
  Match best_match = Match::kNo;
  for (const Importer& importer : Importers()) {
    const Match match = importer.sniff(source, head);
    if (match > best_match) {
      best = &importer;
      best_match = match;
    }
  }
  if (best != nullptr) return best;
  return Error{.message = "not a format culprit knows: " + DescribeHead(head),
               .file = source.name(),
               .hint = "known are " + FormatNames()};
}

Result<ImportOutcome> ImportOne(const Source& source, const ImportRequest& request,
                                const std::string& path) {
  CULPRIT_ASSIGN(const Importer* const importer, ChooseImporter(source, request.format));
  ImportOutcome outcome;
  outcome.format = importer->name;
  trace::EventCensus census;
  CULPRIT_TRY(WriteImported(source, *importer, request.options, path, census, outcome.diagnostics));
  Status status = AddInstances(source, request, path, outcome.diagnostics);
  if (status.ok()) status = Describe(path, census, outcome);
  if (status.ok()) return outcome;
  ::unlink(path.c_str());
  return status.error();
}

}  // namespace culprit::import_
