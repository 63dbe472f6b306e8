// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"
#include "causality/impact.h"
#include "cli/causality_input.h"
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/gather_flags.h"
#include "cli/impact_report.h"

namespace culprit::cli {
namespace {

std::string NextContrast(const CausalityInput& input, const causality::ImpactResult& result) {
  const causality::ImpactRow& row =
      result.scenarios.empty() ? result.whole : result.scenarios.front();
  std::string line = "next: culprit contrast " + ShellWord(input.path);
  if (!row.scenario.empty()) line += " --scenario " + ShellWord(row.scenario);
  for (const std::string& glob : input.options.extract.component.globs) {
    line += " --component " + ShellWord(glob);
  }
  return line;
}

Result<int> RunImpact(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(causality::GatherOptions gather, ReadCausalityFlags(arguments, ForWhat::kImpact));
  causality::ImpactOptions options;
  options.resamples =
      static_cast<uint32_t>(std::min<uint64_t>(arguments.Number("--resamples"), 1'000'000));
  options.seed = arguments.Number("--seed");
  options.jobs = gather.jobs;
  CULPRIT_ASSIGN(
      const CausalityInput input,
      GatherCausalityAnywhere(arguments.operands().front(), arguments, std::move(gather), output));
  NoteGathered(input.gathered, output);
  const causality::ImpactResult result = causality::MeasureImpact(input.evidence, options);
  if (arguments.Has("--json")) {
    output.Print(ImpactJson(input, result));
    return 0;
  }
  output.Print(ImpactText(
      input, result,
      {.show = arguments.Number("--top"), .width = output.width(), .color = output.color()}));
  output.Note(NextContrast(input, result));
  return 0;
}

}  // namespace

Command ImpactCommand() {
  Command command;
  command.name = "impact";
  command.summary = "how much of the time each module, process or cgroup waits and runs";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit impact fleet", "every module at once"},
      {"culprit impact fleet --component '*.sys'", "all drivers together, and each of them"},
      {"culprit impact fleet --by process", "every process instead"},
      {"culprit impact fleet -c 'libssl*' --scenario 'Http*' --json", "one library, for a script"}};
  command.flags = CausalityFlags();
  command.flags.push_back({.name = "--top",
                           .letter = 'n',
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "rows of each table",
                           .default_text = "20"});
  command.flags.push_back({.name = "--resamples",
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "of the traces, for the intervals; 0: no intervals",
                           .default_text = "1000"});
  command.flags.push_back({.name = "--seed",
                           .kind = ValueKind::kNumber,
                           .value = "N",
                           .help = "of the resamples",
                           .default_text = "1"});
  command.flags.push_back({.name = "--json", .help = "print JSON with all rows"});
  for (Flag& flag : EngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Follows the waits of every instance to whoever ended them, and adds up for each component "
      "the time blocked in it, the CPU time it used, and how much of the blocked time is one and "
      "the same wait that delayed several instances. A component is a module, a process or a "
      "cgroup; --component makes one of all that match, with its parts beside it.\n\n"
      "Where a trace marks no instances they are found: the spans between two waits for work. "
      "docs/impact.md explains every number.";
  command.run = &RunImpact;
  return command;
}

}  // namespace culprit::cli
