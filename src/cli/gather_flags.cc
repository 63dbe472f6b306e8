// SPDX-License-Identifier: Apache-2.0
#include "cli/gather_flags.h"

#include <unistd.h>

#include "base/large_memory.h"
#include "cli/mine_options.h"

namespace culprit::cli {
namespace {

uint64_t MachineBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

}  // namespace

std::vector<Flag> GatherFlags() {
  return {{"--memory", 0, ValueKind::kText, "SIZE",
           "for traces and evidence in memory at a time, else a quarter of the machine's; a trace "
           "that needs more is skipped and named"},
          {"--no-summaries", 0, ValueKind::kNone, "",
           "read every trace; neither use nor keep summaries in the corpus"}};
}

Result<uint64_t> ReadMemoryFlag(const Arguments& arguments) {
  if (!arguments.Has("--memory")) return MachineBytes() / 4;
  const auto bytes = ParseBytes(arguments.Text("--memory"));
  if (bytes) return *bytes;
  return Error{.message = "'" + arguments.Text("--memory") + "' is no size",
               .hint = "write it as 500MB or 2GB"};
}

Result<GatherBounds> ReadGatherFlags(const Arguments& arguments) {
  GatherBounds bounds;
  bounds.use_summaries = !arguments.Has("--no-summaries");
  CULPRIT_ASSIGN(bounds.memory_bytes, ReadMemoryFlag(arguments));
  const bool given = arguments.Has("--memory");
  bounds.max_trace_bytes = given ? bounds.memory_bytes : MachineBytes() / 4 * 3;
  LargeMemory::SetBound(corpus::TableShare(bounds.memory_bytes));
  return bounds;
}

void NoteGathered(const corpus::GatherReport& report, Output& output) {
  if (!report.why_not_spilled.empty()) {
    output.Note("more memory is used than --memory allows: " + report.why_not_spilled);
  }
  if (report.why_not_kept.empty()) return;
  output.Note("summaries are not kept, so the next command reads every trace again: " +
              report.why_not_kept);
}

}  // namespace culprit::cli
