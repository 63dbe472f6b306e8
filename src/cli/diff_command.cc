// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "causality/diff.h"
#include "cli/commands.h"
#include "cli/diff_report.h"
#include "cli/engine_options.h"
#include "cli/exceptions_file.h"
#include "cli/gather_flags.h"
#include "cli/share.h"

namespace culprit::cli {
namespace {

constexpr double kMostShare = 1e6;  // a bound may be more than the whole

Result<causality::DiffOptions> ReadDiffFlags(const Arguments& arguments) {
  causality::DiffOptions options;
  CULPRIT_ASSIGN(options.significant, ReadShare(arguments, "--significant", kMostShare));
  CULPRIT_ASSIGN(options.tolerance, ReadShare(arguments, "--tolerance", kMostShare));
  if (arguments.Has("--exceptions")) {
    CULPRIT_ASSIGN(options.exceptions, ReadExceptions(arguments.Text("--exceptions")));
  }
  options.aggregate.prune_hardware = !arguments.Has("--keep-devices");
  options.significance.deals =
      static_cast<uint32_t>(std::min<uint64_t>(arguments.Number("--deals"), 1'000'000));
  options.significance.seed = arguments.Number("--seed");
  options.significance.jobs = arguments.Number("--jobs");
  return options;
}

Result<DiffFacts> GatherDiff(const Arguments& arguments, Output& output) {
  DiffFacts facts;
  CULPRIT_ASSIGN(const causality::DiffOptions options, ReadDiffFlags(arguments));
  facts.significant = options.significant;
  if (arguments.Has("--bound")) {
    CULPRIT_ASSIGN(facts.bound, ReadShare(arguments, "--bound", kMostShare));
  }
  CULPRIT_ASSIGN(const causality::GatherOptions gather,
                 ReadCausalityFlags(arguments, ForWhat::kChains));
  const std::vector<std::string>& paths = arguments.operands();
  // Both before the first is read, which may take long.
  for (const std::string& path : paths) CULPRIT_TRY(CheckSource(path, arguments));
  CULPRIT_ASSIGN(facts.before,
                 GatherCausalityAnywhere(paths[0], arguments, gather, output, "before"));
  CULPRIT_ASSIGN(facts.after,
                 GatherCausalityAnywhere(paths[1], arguments, gather, output, "after"));
  CULPRIT_ASSIGN(facts.result,
                 causality::FindDifferences(facts.before.evidence, facts.after.evidence, options));
  if (facts.bound) facts.violations = FindDiffViolations(facts);
  return facts;
}

Result<int> RunDiff(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const DiffFacts facts, GatherDiff(arguments, output));
  NoteGathered(facts.before.gathered, output);
  NoteGathered(facts.after.gathered, output);
  if (arguments.Has("--json")) {
    output.Print(DiffJson(facts));
  } else {
    output.Print(DiffText(
        facts,
        {.show = arguments.Number("--show"), .width = output.width(), .color = output.color()}));
  }
  if (!facts.bound) return 0;
  // A trace that cannot be read was not compared.
  return facts.violations.empty() && facts.all_read() ? 0 : 1;
}

std::vector<Flag> DiffFlags() {
  return {{.name = "--bound",
           .kind = ValueKind::kText,
           .value = "SHARE",
           .help = "for CI: exit with 1 if a scenario or chain lost more: 5% of the mean duration"},
          {.name = "--significant",
           .kind = ValueKind::kText,
           .value = "P",
           .help = "what p may be at most to count as moved",
           .default_text = "0.05"},
          {.name = "--tolerance",
           .kind = ValueKind::kText,
           .value = "SHARE",
           .help = "chains whose time moved by less are the same",
           .default_text = "5%"},
          {.name = "--exceptions",
           .kind = ValueKind::kPath,
           .value = "FILE",
           .help = "globs of functions that are by design, one a line, # for comments"},
          {.name = "--keep-devices", .help = "keep waits for a device alone"},
          {.name = "--deals",
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "of the permutation test behind p; 0: no test",
           .default_text = "2000"},
          {.name = "--seed",
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "of the deals",
           .default_text = "1"},
          {.name = "--show",
           .letter = 'n',
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "chains shown in full",
           .default_text = "5"},
          {.name = "--json", .help = "print JSON with all chains"}};
}

}  // namespace

Command DiffCommand() {
  Command command;
  command.name = "diff";
  command.summary = "which chains of waits appeared, grew, shrank or vanished between two corpora";
  command.operands = "BEFORE AFTER";
  command.min_operands = 2;
  command.max_operands = 2;
  command.examples = {
      {"culprit diff release-1 release-2", "what changed, in time per instance"},
      {"culprit diff before.ctrace after.ctrace --component 'server!*'", "two recordings"},
      {"culprit diff main nightly --bound 5% --json",
       "for CI: exit code 1 if something lost more than 5 %"}};
  command.flags = CausalityFlags();
  for (Flag& flag : DiffFlags()) command.flags.push_back(std::move(flag));
  for (Flag& flag : EngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Compares the chains of waits of all instances, scenario by scenario, in time per instance; "
      "a permutation test says which changes are more than chance.\n\n"
      "With --bound the exit code is 1 if a scenario's mean duration, or a chain's time per "
      "instance, significantly grew by more than that share of the mean duration before, or if a "
      "trace could not be read; else 0. docs/diff.md explains every number.";
  command.run = &RunDiff;
  return command;
}

}  // namespace culprit::cli
