// SPDX-License-Identifier: Apache-2.0
//
// PerfSession: what a perf.data says about itself, apart from its events: byte
// order, attrs, where the data is, tracepoint formats, build-ids, the machine.
// ReadPerfHeader reads it from the head of a file; in pipe mode attrs and
// features are records, which AddPerfRecord takes. A file whose writer died has
// a data size of zero and no features: its data then reaches to the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "import/event_format.h"
#include "import/perf_data_attr.h"
#include "import/perf_data_layout.h"
#include "import/perf_file_symbols.h"
#include "import/source.h"

namespace culprit::import_ {

struct PerfSession {
  bool big = false;
  bool pipe = false;
  uint64_t data_begin = 0;
  uint64_t data_end = 0;
  PerfAttrs attrs;
  std::vector<EventFormat> formats;
  std::string kallsyms;
  std::map<std::string, std::string, std::less<>> build_ids;  // by path, hexadecimal
  std::string hostname;
  std::string os_release;
  std::string arch;
  std::string perf_version;
  std::string command_line;
  uint32_t cpus = 0;
  // One moment on the wall clock and on the recording's.
  uint64_t wall_clock_ns = 0;
  uint64_t clock_ns = 0;
  std::map<std::string, std::string> simpleperf;  // its meta information
  PerfFileSymbols file_symbols;
};

// The magic of a perf.data in either byte order.
bool IsPerfData(std::string_view head);
Result<PerfSession> ReadPerfHeader(const Source& source, Diagnostics& diagnostics);
// A record that describes the recording; others are left alone.
void AddPerfRecord(const PerfRecordView& record, PerfSession& session, Diagnostics& diagnostics);

}  // namespace culprit::import_
