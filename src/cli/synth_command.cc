// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "cli/commands.h"
#include "report/table.h"
#include "synth/machine.h"
#include "synth/preset.h"
#include "synth/synthesis.h"

namespace culprit::cli {
namespace {

using report::Table;

Result<synth::PlantSet> ParseBugs(const std::string& list) {
  if (list == "all") return synth::AllPlants();
  synth::PlantSet set = synth::NoPlants();
  if (list == "none") return set;
  std::vector<std::string_view> names;
  for (const synth::Behaviour& row : synth::Behaviours()) {
    if (!row.scenario.empty()) names.push_back(row.name);
  }
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    const std::optional<synth::Plant> plant = synth::FindPlant(name);
    if (!plant || synth::BehaviourOf(*plant).scenario.empty()) {
      Error error{.message = "--bugs: nothing is called '" + name + "'"};
      if (const auto near = Nearest(name, names)) {
        error.hint = "did you mean '" + std::string(*near) + "'?";
      } else {
        error.hint = fmt::format("one of {}, or all, or none", fmt::join(names, ", "));
      }
      return error;
    }
    set[*plant] = true;
    begin = end + 1;
  }
  return set;
}

Result<synth::SynthesisOptions> MakeOptions(const Arguments& arguments) {
  synth::SynthesisOptions options;
  if (!arguments.Has("--output")) {
    return Error{.message = "no output folder given", .hint = "culprit synth -o CORPUS"};
  }
  options.folder = arguments.Text("--output");
  options.force = arguments.Has("--force");
  options.jobs = arguments.Number("--jobs");
  options.simulation.seed = arguments.Number("--seed");
  options.simulation.syscall_stacks = !arguments.Has("--no-syscall-stacks");
  synth::Preset& preset = options.simulation.preset;
  preset = *synth::FindPreset(arguments.Text("--like"));
  options.scale = arguments.Real("--scale");
  if (!(options.scale > 0 && options.scale <= 1000)) {
    return Error{.message = "--scale must be above 0 and at most 1000"};
  }
  preset.traces = synth::ScaledTraces(preset.traces, options.scale);
  if (arguments.Has("--traces")) preset.traces = arguments.Number("--traces");
  if (preset.traces < 1 || preset.traces > 1'000'000) {
    return Error{.message = "--traces must be from 1 to 1000000"};
  }
  if (arguments.Has("--dur")) preset.dur_ns = arguments.DurationNs("--dur");
  if (preset.dur_ns < 100'000'000 || preset.dur_ns > 3'600'000'000'000) {
    return Error{.message = "--dur must be from 100ms to 1h"};
  }
  if (arguments.Has("--cores")) preset.cores = arguments.Number("--cores");
  if (preset.cores < 1 || preset.cores > synth::kMaxCores) {
    return Error{.message = fmt::format("--cores must be from 1 to {}", synth::kMaxCores)};
  }
  CULPRIT_ASSIGN(options.simulation.plants, ParseBugs(arguments.Text("--bugs")));
  return options;
}

std::string Summary(const synth::SynthesisResult& result, double seconds, bool color) {
  const double events = static_cast<double>(result.events);
  return report::Facts(
      {{"traces", FormatCount(result.traces)},
       {"instances", FormatCount(result.instances)},
       {"events", FormatCount(result.events)},
       {"size", fmt::format("{}, {:.2f} bytes an event", FormatBytes(result.bytes),
                            static_cast<double>(result.bytes) / events)},
       {"simulated", FormatDuration(result.simulated_ns)},
       {"took", fmt::format("{}, {} events/s", FormatDuration(static_cast<int64_t>(seconds * 1e9)),
                            FormatCount(static_cast<uint64_t>(events / seconds)))}},
      color);
}

std::string PlantedTable(const synth::Truth& truth, size_t width, bool color) {
  Table table;
  table.Column("planted")
      .Column("what")
      .Column("scenario")
      .Column("traces", Table::Align::kRight)
      .Column("instances", Table::Align::kRight)
      .Column("events", Table::Align::kRight)
      .Column("cost", Table::Align::kRight);
  for (const synth::PlantedTruth& bug : truth.bugs) {
    const synth::Behaviour& row = synth::BehaviourOf(bug.plant);
    table.Row({std::string(row.name),
               row.by_design ? "by design" : (row.noise ? "noise" : std::string(row.kind)),
               row.scenario.empty() ? "-" : std::string(row.scenario), FormatCount(bug.traces),
               FormatCount(bug.instances.size()), FormatCount(bug.events),
               FormatDuration(bug.cost_ns)});
  }
  return table.ToText(width, color);
}

Result<int> Run(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const synth::SynthesisOptions options, MakeOptions(arguments));
  const auto begin = std::chrono::steady_clock::now();
  CULPRIT_ASSIGN(const synth::SynthesisResult result,
                 synth::Synthesize(options, output.progress()));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  output.Print(Summary(result, took.count(), output.color()));
  output.Print("\n");
  output.Print(PlantedTable(result.truth, output.width(), output.color()));
  output.Note("truth: " + options.folder + "/truth.json");
  output.Note("next: culprit info " + options.folder);
  return 0;
}

}  // namespace

Command SynthCommand() {
  Command command;
  command.name = "synth";
  command.summary = "simulate a fleet of machines and write a corpus with known truth";
  command.examples = {
      {"culprit synth -o demo", "40 small traces with all planted bugs"},
      {"culprit synth --like windows-study --scale 0.01 -o study",
       "nine traces as dense as those of the Explorer study"},
      {"culprit synth --like server --bugs none -o healthy", "the same servers without the bug"}};
  command.flags = {
      {"--output", 'o', ValueKind::kPath, "CORPUS", "folder to make; required"},
      {"--like",
       0,
       ValueKind::kChoice,
       "PRESET",
       "which study to resemble",
       "demo",
       {"demo", "windows-study", "drivers", "server"}},
      {"--scale", 0, ValueKind::kReal, "F", "share of the preset's number of traces", "1"},
      {"--traces", 0, ValueKind::kNumber, "N", "number of traces, instead of --scale"},
      {"--dur", 0, ValueKind::kDuration, "D", "simulated time of each trace"},
      {"--cores", 0, ValueKind::kNumber, "N", "cores of each machine, up to 16"},
      {"--seed", 0, ValueKind::kNumber, "N", "same seed, same bytes", "1"},
      {"--bugs", 0, ValueKind::kText, "LIST", "what may strike: names, all or none", "all"},
      {"--no-syscall-stacks", 0, ValueKind::kNone, "", "leave the stacks of system calls out"},
      {"--force", 0, ValueKind::kNone, "", "replace the traces of a corpus that is there"},
      {"--jobs", 'j', ValueKind::kNumber, "N", "threads to use; 0: all", "0"}};
  command.details =
      "Simulates a small operating system (cores, locks, queues, disks, users) and writes what "
      "happens as native traces. Planted bugs strike in some instances; truth.json in the corpus "
      "folder says which, where and at what cost.\n\n"
      "Names for --bugs: file-table-lock, short-path-name, glyph-hot-loop, graphics-hard-fault, "
      "accept-retry-loop, disk-protection, direct-disk-read. Users' thinking times and "
      "housekeeping timers are always there.";
  command.run = &Run;
  return command;
}

}  // namespace culprit::cli
