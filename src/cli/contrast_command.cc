// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/parallel.h"
#include "base/shell_word.h"
#include "causality/contrast.h"
#include "cli/causality_input.h"
#include "cli/commands.h"
#include "cli/contrast_report.h"
#include "cli/engine_options.h"
#include "cli/exceptions_file.h"
#include "cli/gather_flags.h"

namespace culprit::cli {
namespace {

using causality::ContrastOptions;
using causality::ContrastResult;
using causality::RankBy;
using causality::Threshold;

Result<Threshold> ReadThreshold(const Arguments& arguments, std::string_view flag) {
  const std::string text = arguments.Text(flag);
  const auto threshold = causality::ParseThreshold(text);
  if (!threshold) {
    return Error{.message = std::string(flag) + ": '" + text + "' is no duration or percentile",
                 .hint = "write it as 300ms or p90, or leave it out to have it chosen"};
  }
  return *threshold;
}

Result<ContrastOptions> ReadContrastFlags(const Arguments& arguments) {
  ContrastOptions options;
  CULPRIT_ASSIGN(options.classes.fast, ReadThreshold(arguments, "--fast"));
  CULPRIT_ASSIGN(options.classes.slow, ReadThreshold(arguments, "--slow"));
  const std::string rank = arguments.Text("--rank");
  if (rank == "cost") options.rank = RankBy::kCost;
  if (rank == "instances") options.rank = RankBy::kInstances;
  if (arguments.Has("--exceptions")) {
    CULPRIT_ASSIGN(options.exceptions, ReadExceptions(arguments.Text("--exceptions")));
  }
  const uint64_t segment = arguments.Number("--segment");
  if (segment < 1 || segment > 20) {
    return Error{.message = "--segment must be from 1 to 20",
                 .hint = "5 is what the paper uses; longer ones hardly add contrasts"};
  }
  options.max_segment = static_cast<uint32_t>(segment);
  options.aggregate.prune_hardware = !arguments.Has("--keep-devices");
  options.examples = static_cast<uint32_t>(std::min<uint64_t>(arguments.Number("--examples"), 100));
  options.significance.deals =
      static_cast<uint32_t>(std::min<uint64_t>(arguments.Number("--deals"), 1'000'000));
  options.significance.seed = arguments.Number("--seed");
  options.significance.jobs = arguments.Number("--jobs");
  return options;
}

// Most time in patterns first; names decide between equals.
void Sort(ContrastFacts& facts) {
  std::sort(facts.results.begin(), facts.results.end(),
            [](const ContrastResult& a, const ContrastResult& b) {
              return a.patterns_ns != b.patterns_ns ? a.patterns_ns > b.patterns_ns
                                                    : a.scenario < b.scenario;
            });
}

Result<ContrastFacts> ContrastScenarios(const CausalityInput& input, ContrastOptions options,
                                        Progress& progress) {
  const std::vector<causality::ScenarioFacts> scenarios =
      causality::DescribeScenarios(input.evidence);
  ContrastFacts facts;
  Error last;
  progress.Start("contrasting", "scenarios", scenarios.size());
  for (const causality::ScenarioFacts& scenario : scenarios) {
    options.scenario = scenario.name;
    Result<ContrastResult> result = causality::FindContrasts(input.evidence, options);
    progress.Advance();
    if (result.ok()) {
      facts.results.push_back(std::move(result).value());
      continue;
    }
    // Scenarios come by number of instances: the first tells most.
    if (facts.left_out.empty()) last = result.error();
    facts.left_out.emplace_back(scenario.name, result.error().message);
  }
  progress.Finish();
  if (facts.results.empty()) return last;
  Sort(facts);
  return facts;
}

std::string NextLine(const CausalityInput& input, const ContrastFacts& facts) {
  const ContrastResult& first = facts.results.front();
  if (facts.results.size() > 1) {
    return "next: culprit contrast " + ShellWord(input.path) + " --scenario " +
           ShellWord(first.scenario);
  }
  if (first.patterns.empty() || first.patterns.front().examples.empty()) return {};
  const causality::Example& example = first.patterns.front().examples.front();
  return "next: " + input.ShowLine(example.trace, example.index) + " --lanes";
}

Result<int> RunContrast(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const ContrastOptions options, ReadContrastFlags(arguments));
  CULPRIT_ASSIGN(causality::GatherOptions gather, ReadCausalityFlags(arguments, ForWhat::kChains));
  CULPRIT_ASSIGN(
      const CausalityInput input,
      GatherCausalityAnywhere(arguments.operands().front(), arguments, std::move(gather), output));
  NoteGathered(input.gathered, output);
  CULPRIT_ASSIGN(const ContrastFacts facts, ContrastScenarios(input, options, output.progress()));
  if (arguments.Has("--json")) {
    output.Print(ContrastJson(input, facts));
    return 0;
  }
  output.Print(ContrastText(
      input, facts,
      {.show = arguments.Number("--show"), .width = output.width(), .color = output.color()}));
  if (const std::string next = NextLine(input, facts); !next.empty()) output.Note(next);
  return 0;
}

std::vector<Flag> ContrastFlags() {
  return {{.name = "--fast",
           .kind = ValueKind::kText,
           .value = "BOUND",
           .help = "instances below are fast: 300ms, p50, auto",
           .default_text = "auto"},
          {.name = "--slow",
           .kind = ValueKind::kText,
           .value = "BOUND",
           .help = "instances above are slow: 500ms, p90, auto",
           .default_text = "auto"},
          {.name = "--exceptions",
           .kind = ValueKind::kPath,
           .value = "FILE",
           .help = "globs of functions that are by design, one a line, # for comments"},
          {.name = "--rank",
           .kind = ValueKind::kChoice,
           .value = "BY",
           .help = "order of the patterns: average, cost or instances",
           .default_text = "average",
           .choices = {"average", "cost", "instances"}},
          {.name = "--segment",
           .letter = 'k',
           .kind = ValueKind::kNumber,
           .value = "K",
           .help = "parts of chains that are compared have up to K nodes",
           .default_text = "5"},
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
          {.name = "--examples",
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "instances named for each pattern",
           .default_text = "3"},
          {.name = "--show",
           .letter = 'n',
           .kind = ValueKind::kNumber,
           .value = "N",
           .help = "patterns shown in full",
           .default_text = "5"},
          {.name = "--json", .help = "print JSON with all patterns"}};
}

}  // namespace

Command ContrastCommand() {
  Command command;
  command.name = "contrast";
  command.summary = "what slow instances of a scenario do that fast ones do not";
  command.operands = "CORPUS|TRACE";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {
      {"culprit contrast fleet --scenario BrowserTabCreate --component '*.sys'",
       "which driver behaviours make tabs slow"},
      {"culprit contrast fleet -s BrowserTabCreate --fast 300ms --slow 500ms",
       "with the bounds that were promised"},
      {"culprit contrast fleet -s 'Http*' --fast p50 --slow p99", "with percentiles"},
      {"culprit contrast fleet", "all scenarios, side by side"},
      {"culprit contrast fleet -s MenuDisplay --exceptions by-design.txt --json",
       "without what is by design, for a script"}};
  command.flags = CausalityFlags();
  for (Flag& flag : ContrastFlags()) command.flags.push_back(std::move(flag));
  for (Flag& flag : EngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Builds the chains of waits of every instance, adds them up for the fast and for the slow "
      "ones, and prints the chains of the slow ones that no fast one has, or that take longer "
      "there by more than the bounds differ. A chain is printed as three sets of functions: what "
      "waited, what ended the waits, and what ran or which device served meanwhile.\n\n"
      "Without --component the functions are those nearest to the wait; of the kernel and the C "
      "and "
      "C++ libraries only where there is no other. Without --fast and --slow the bounds are chosen "
      "from the distribution of durations and printed. docs/contrast.md explains every number.";
  command.run = &RunContrast;
  return command;
}

}  // namespace culprit::cli
