// SPDX-License-Identifier: Apache-2.0
//
// What a trace can be exported to: one row a target, one file a target. A
// target either streams into a Sink or makes a file of its own (sqlite).
// Exporters read block by block, so memory is the dictionary and one block,
// however long the trace; folded, pprof and speedscope also keep a number a
// distinct stack, perfetto and firefox go by thread and say what they need.
//
// A damaged trace gives what is readable of it; what was skipped is in the
// Summary's diagnostics. A trace of which nothing is readable is an Error.
// Adding a target: its file, a declaration and a row in target.cc, its test.
//
// The namespace is export_ because `export` is a word of the language.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/result.h"
#include "trace/trace_reader.h"

namespace culprit::export_ {

using Sink = std::function<Status(std::string_view)>;

struct Options {
  // Whose time is shown, where Target::takes_kind. None: waits, or running code
  // if there are none; firefox: all the time of a thread.
  std::optional<trace::EventKind> kind = {};
  bool threads = false;          // by process and thread, where Target::takes_threads
  Progress* progress = nullptr;  // steps are events
};

struct Summary {
  uint64_t events = 0;      // read, whatever their kind
  Diagnostics diagnostics;  // the reader's, and the blocks that could not be read
};

struct Target {
  std::string_view name;
  std::string_view summary;
  // Exactly one of the two is set.
  Result<Summary> (*to_sink)(const trace::TraceReader&, const Options&, const Sink&) = nullptr;
  Result<Summary> (*to_file)(const trace::TraceReader&, const Options&, const std::string& path,
                             Overwrite overwrite) = nullptr;
  bool takes_kind = false;     // Options::kind means something
  bool takes_threads = false;  // so does Options::threads
  bool binary = false;         // no text: nothing for a terminal
  // What to do with the file, FILE standing for its name; empty: nothing to say.
  std::string_view next = {};
};

const std::vector<Target>& Targets();
const Target* FindTarget(std::string_view name);

Result<Summary> ExportJson(const trace::TraceReader& reader, const Options& options,
                           const Sink& sink);
Result<Summary> ExportFolded(const trace::TraceReader& reader, const Options& options,
                             const Sink& sink);
Result<Summary> ExportPprof(const trace::TraceReader& reader, const Options& options,
                            const Sink& sink);
Result<Summary> ExportSpeedscope(const trace::TraceReader& reader, const Options& options,
                                 const Sink& sink);
Result<Summary> ExportPerfetto(const trace::TraceReader& reader, const Options& options,
                               const Sink& sink);
Result<Summary> ExportFirefox(const trace::TraceReader& reader, const Options& options,
                              const Sink& sink);
Result<Summary> ExportSqlite(const trace::TraceReader& reader, const Options& options,
                             const std::string& path, Overwrite overwrite);

}  // namespace culprit::export_
