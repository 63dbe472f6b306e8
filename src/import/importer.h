// SPDX-License-Identifier: Apache-2.0
//
// Importer: one foreign format, described once: its name, how to recognize it
// by content, how to read it. All of them stand in one table (importers.cc);
// adding a format is its file, one line there, its test.
//
// An importer reads its input through a Source, feeds an Assembler or writes
// events itself, and counts what it could not use in Diagnostics with byte
// offsets. It returns an Error only if nothing could be read. Memory must not
// grow with the input beyond what is stated in its file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/perf_map_file.h"
#include "import/source.h"
#include "trace/trace_writer.h"

namespace culprit::import_ {

inline constexpr size_t kMaxStackFrames = 4096;    // a foreign stack with more is damage
inline constexpr uint32_t kMaxCpus = 8192;         // a foreign trace that names more is damaged
inline constexpr uint64_t kCloneThread = 0x10000;  // CLONE_THREAD of clone(2)

struct ImportOptions {
  bool symbols = true;                      // look names up in local binaries and debug files
  std::string kallsyms = {};                // a snapshot; empty: only what the trace carries
  std::string sysroot = {};                 // where the recorded machine's files are
  std::string build_id_cache = {};          // files kept by perf, if any (~/.debug)
  std::string debuginfod_cache = {};        // files kept by a debuginfod client, if any
  std::vector<PerfMapFile> perf_maps = {};  // names of code made at run time
  int64_t default_period_ns = 1'000'000;    // of samples in formats that do not say
};

// How sure a format is that an input is its own.
enum class Match : uint8_t { kNo = 0, kMaybe = 1, kLikely = 2, kCertain = 3 };

struct Importer {
  std::string_view name;     // "perf.data"
  std::string_view summary;  // "Linux perf, file and pipe mode"
  // Looks at the input's first bytes (at most kSniffBytes) and, for formats that
  // are folders, at the names beside it.
  Match (*sniff)(const Source& source, std::string_view head);
  Status (*read)(const Source& source, const ImportOptions& options, trace::TraceWriter& writer,
                 Diagnostics& diagnostics);
};

inline constexpr size_t kSniffBytes = 64 * 1024;

const std::vector<Importer>& Importers();

}  // namespace culprit::import_
