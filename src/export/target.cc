// SPDX-License-Identifier: Apache-2.0
#include "export/target.h"

namespace culprit::export_ {

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {.name = "json", .summary = "everything, as one JSON document", .to_sink = ExportJson},
      {.name = "folded",
       .summary = "time by stack, for flame graphs: frame;frame;frame NANOSECONDS",
       .to_sink = ExportFolded,
       .takes_kind = true,
       .takes_threads = true,
       .next = "flamegraph.pl FILE > FILE.svg"},
      {.name = "sqlite",
       .summary = "everything, as an SQLite database",
       .to_file = ExportSqlite,
       .next = "sqlite3 FILE 'SELECT kind, count(*), sum(dur_ns) FROM event GROUP BY kind'"},
      {.name = "perfetto",
       .summary = "the time line of CPUs and threads, for ui.perfetto.dev",
       .to_sink = ExportPerfetto,
       .binary = true,
       .next = "open FILE at https://ui.perfetto.dev"},
      {.name = "pprof",
       .summary = "time by stack, for go tool pprof",
       .to_sink = ExportPprof,
       .takes_kind = true,
       .takes_threads = true,
       .binary = true,
       .next = "go tool pprof -http=: FILE"},
      {.name = "firefox",
       .summary = "the time line of threads with stacks, for profiler.firefox.com",
       .to_sink = ExportFirefox,
       .takes_kind = true,
       .next = "open FILE at https://profiler.firefox.com"},
      {.name = "speedscope",
       .summary = "time by thread and stack, for speedscope.app",
       .to_sink = ExportSpeedscope,
       .takes_kind = true,
       .next = "speedscope FILE, or open it at https://www.speedscope.app"},
  };
  return targets;
}

const Target* FindTarget(std::string_view name) {
  for (const Target& target : Targets()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace culprit::export_
