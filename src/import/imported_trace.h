// SPDX-License-Identifier: Apache-2.0
//
// ImportedTrace: what an importer makes of a source, read back through the
// native format, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "import/importer.h"
#include "trace/conservation.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

struct ImportedTrace {
  Status status;
  trace::Trace trace;
  Diagnostics diagnostics;

  size_t Count(trace::EventKind kind) const {
    return static_cast<size_t>(
        std::count_if(trace.events.begin(), trace.events.end(),
                      [&](const trace::Event& event) { return event.kind == kind; }));
  }
  size_t CountStacked(trace::EventKind kind) const {
    return static_cast<size_t>(std::count_if(
        trace.events.begin(), trace.events.end(),
        [&](const trace::Event& event) { return event.kind == kind && event.stack.valid(); }));
  }
  uint64_t Counted(std::string_view sentence) const {
    const auto it = diagnostics.rows().find(sentence);
    return it == diagnostics.rows().end() ? 0 : it->second.count;
  }
  // Empty: time is conserved.
  std::string Problem() const { return trace::CheckConservation(trace).first_problem; }
  // "process/thread (tid)"
  std::string Thread(trace::ThreadId id) const { return trace.dictionary.ThreadLabel(id); }
  std::string Stack(trace::StackId id) const { return trace.dictionary.StackText(id); }
};

inline ImportedTrace ImportTrace(const Importer& importer, const Source& source,
                                 const ImportOptions& options = {}) {
  ImportedTrace imported;
  std::string bytes;
  trace::TraceWriter writer([&](std::string_view part) -> Status {
    bytes.append(part);
    return {};
  });
  imported.status = importer.read(source, options, writer, imported.diagnostics);
  if (!imported.status.ok()) return imported;
  imported.status = writer.Finish();
  imported.trace =
      std::move(trace::TraceReader::FromBytes(std::move(bytes), "imported")).value().ReadAll();
  return imported;
}

}  // namespace culprit::import_
