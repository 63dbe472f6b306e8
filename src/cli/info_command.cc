// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "cli/commands.h"
#include "cli/info_facts.h"

namespace culprit::cli {
namespace {

Result<int> RunInfo(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands().front();
  std::error_code code;
  const bool is_folder = std::filesystem::is_directory(path, code);
  CULPRIT_ASSIGN(const InfoFacts facts,
                 is_folder ? GatherCorpusInfo(path, arguments.Number("--jobs"), output.progress())
                           : GatherTraceInfo(path));
  const size_t top = arguments.Number("--top");
  if (arguments.Has("--json")) {
    output.Print(InfoJson(facts, top));
  } else {
    output.Print(InfoText(facts, top, output.width(), output.color()));
    output.Note(is_folder ? "next: culprit corpus list " + path + " --scenarios"
                          : "next: culprit export " + path + " --to folded -o waits.folded");
  }
  // Something was asked about and nothing could be read of it.
  return facts.traces > 0 && facts.unreadable.size() == facts.traces ? 1 : 0;
}

}  // namespace

Command InfoCommand() {
  return {
      .name = "info",
      .summary = "what a trace or corpus holds, what can be analysed with it, where its time went",
      .operands = "TRACE|CORPUS",
      .min_operands = 1,
      .max_operands = 1,
      .examples = {{"culprit info fleet", "where the time of a corpus went"},
                   {"culprit info slow.ctrace", "the same for one trace"},
                   {"culprit info fleet --json | jq .breakdown", "the sums, for a script"}},
      .flags = {{.name = "--json", .help = "print JSON instead of text"},
                {.name = "--top",
                 .letter = 'n',
                 .kind = ValueKind::kNumber,
                 .value = "N",
                 .help = "show the N costliest stacks",
                 .default_text = "8"},
                {.name = "--jobs",
                 .letter = 'j',
                 .kind = ValueKind::kNumber,
                 .value = "N",
                 .help = "use N threads; 0: all there are",
                 .default_text = "0"}},
      .details =
          "Times are those of the thread that started each instance, clipped to the instance: "
          "running, waiting, ready to run but not running, and what no event explains. They sum "
          "to the total. Without instances every thread counts as one.\n\n"
          "A damaged or cut-off trace is read as far as possible; what was skipped is shown with "
          "its first byte offset.",
      .run = &RunInfo,
  };
}

}  // namespace culprit::cli
