// SPDX-License-Identifier: Apache-2.0
#include "cli/causality_input.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/shell_word.h"
#include "base/text.h"
#include "causality/classes.h"
#include "cli/engine_options.h"
#include "cli/gather_flags.h"
#include "cli/mine_options.h"
#include "report/block.h"
#include "report/plain_text.h"

namespace culprit::cli {
namespace {

using causality::By;
using causality::Evidence;
using causality::GatherOptions;

constexpr size_t kNamesInMessages = 20;

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesInMessages); ++i) {
    text += (i == 0 ? "" : ", ") + report::PlainText(names[i]);
  }
  if (names.size() > kNamesInMessages) {
    text += " and " + FormatCount(names.size() - kNamesInMessages) + " more";
  }
  return text;
}

// "did you mean 'X'? ", if a name that was asked for is near to one there is.
std::string Meant(const std::vector<std::string>& asked, const std::vector<std::string>& there) {
  const std::vector<std::string_view> names(there.begin(), there.end());
  for (const std::string& name : asked) {
    const auto near = Nearest(name, names);
    if (near) return "did you mean '" + report::PlainText(*near) + "'? ";
  }
  return {};
}

By ReadBy(const std::string& name) {
  if (name == "process") return By::kProcess;
  return name == "cgroup" ? By::kCgroup : By::kModule;
}

std::string_view PartsName(By by) {
  if (by == By::kProcess) return "processes";
  return by == By::kCgroup ? "cgroups" : "modules";
}

uint64_t AutomaticTraces(const Evidence& evidence) {
  return static_cast<uint64_t>(
      std::count_if(evidence.traces.begin(), evidence.traces.end(),
                    [](const causality::TraceFacts& trace) { return trace.automatic; }));
}

// Read once more without the choice, for the message.
std::vector<std::string> ScenariosThereAre(const CausalityInput& input) {
  GatherOptions options = input.options;
  options.extract.scenarios.clear();
  options.extract.impact = false;
  options.extract.chains = false;
  options.use_summaries = false;
  Progress silent;
  const Result<Evidence> all = causality::GatherEvidence(input.path, options, silent);
  std::vector<std::string> names;
  if (!all.ok()) return names;
  for (const causality::ScenarioFacts& scenario : causality::DescribeScenarios(all.value())) {
    names.push_back(scenario.name);
  }
  return names;
}

Error NoInstances(const CausalityInput& input) {
  const Evidence& evidence = input.evidence;
  if (evidence.traces.empty()) {
    const bool unreadable = !evidence.unreadable.empty();
    return {.message = unreadable ? "no trace could be read: " + evidence.unreadable.front()
                                  : "there are no traces",
            .file = input.path,
            .hint = unreadable ? "" : "culprit corpus add puts traces into a corpus"};
  }
  if (evidence.account.instances_left_out > 0) {
    const std::vector<std::string> there = ScenariosThereAre(input);
    return {.message = "no instance is of a scenario that was asked for",
            .file = input.path,
            .hint = Meant(input.options.extract.scenarios, there) + "there are the scenarios " +
                    Listed(there)};
  }
  return {.message = "there are no instances",
          .file = input.path,
          .hint = "marks, import --instances or switches in the trace make them; culprit info " +
                  ShellWord(input.path) + " tells what it has"};
}

// The table of components has the whole set alone if no glob matched anything.
bool NothingChosen(const Evidence& evidence) { return evidence.components.size() <= 1; }

Error NoComponent(const CausalityInput& input) {
  const causality::ComponentOptions& component = input.options.extract.component;
  const std::string parts(PartsName(component.by));
  Error error = {.message = "nothing is of the component " + causality::SetName(component),
                 .file = input.path};
  if (input.evidence.not_chosen.empty()) {
    error.hint = "the traces have no " + parts + " with a name" +
                 (component.by == By::kModule ? ": no stacks; try --by process" : "");
  } else {
    error.hint = Meant(component.globs, input.evidence.not_chosen) + "there are the " + parts +
                 " " + Listed(input.evidence.not_chosen);
  }
  return error;
}

}  // namespace

std::vector<Flag> CausalityFlags() {
  std::vector<Flag> flags = {
      {.name = "--component",
       .letter = 'c',
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "whose behaviour to judge: '*.sys', 'libssl*!*'; may be repeated"},
      {.name = "--by",
       .kind = ValueKind::kChoice,
       .value = "WHAT",
       .help = "what components are and --component names: module, process or cgroup",
       .default_text = "module",
       .choices = {"module", "process", "cgroup"}},
      {.name = "--except",
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "frames that never belong to the component; may be repeated"},
      {.name = "--scenario",
       .letter = 's',
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "only these scenarios; may be repeated"},
      {.name = "--auto", .help = "find instances even where they are marked"},
      {.name = "--idle",
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "where instances are found: waits with such a frame are idle"},
      {.name = "--not-idle",
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "where instances are found: waits with such a frame are never idle"},
      {.name = "--max-memory",
       .kind = ValueKind::kText,
       .value = "SIZE",
       .help = "for one trace: 2GB, 500MB; larger ones are skipped and named"},
      {.name = "--jobs",
       .letter = 'j',
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "threads to use; 0: all",
       .default_text = "0"}};
  for (Flag& flag : GatherFlags()) flags.push_back(std::move(flag));
  return flags;
}

Result<GatherOptions> ReadCausalityFlags(const Arguments& arguments, ForWhat what) {
  GatherOptions options;
  causality::ExtractOptions& extract = options.extract;
  extract.impact = what == ForWhat::kImpact;
  extract.chains = what == ForWhat::kChains;
  extract.component.by = ReadBy(arguments.Text("--by"));
  extract.component.globs = arguments.All("--component");
  extract.component.except = arguments.All("--except");
  extract.automatic.idle = arguments.All("--idle");
  extract.automatic.not_idle = arguments.All("--not-idle");
  extract.always_automatic = arguments.Has("--auto");
  extract.scenarios = arguments.All("--scenario");
  options.jobs = arguments.Number("--jobs");
  CULPRIT_ASSIGN(const GatherBounds bounds, ReadGatherFlags(arguments));
  options.memory_bytes = bounds.memory_bytes;
  options.max_memory_bytes = bounds.max_trace_bytes;
  options.use_summaries = bounds.use_summaries;
  if (arguments.Has("--max-memory")) {
    const auto bytes = ParseBytes(arguments.Text("--max-memory"));
    if (!bytes) {
      return Error{.message = "'" + arguments.Text("--max-memory") + "' is no size",
                   .hint = "write it as 500MB or 2GB"};
    }
    options.max_memory_bytes = *bytes;
  }
  return options;
}

int64_t CausalityInput::total_ns() const {
  int64_t total_ns = 0;
  for (const causality::InstanceFacts& instance : evidence.instances) total_ns += instance.dur_ns;
  return total_ns;
}

std::string CausalityInput::ComponentText() const {
  const causality::ComponentOptions& component = options.extract.component;
  std::string text = causality::SetName(component);
  if (default_component && component.by == By::kModule && options.extract.chains) {
    text += "; of the kernel and the C and C++ libraries only where there is no other";
  } else if (component.by != By::kModule) {
    text += ", by " + std::string(Name(component.by));
  }
  return text;
}

std::string CausalityInput::ShowLine(const std::string& trace, uint32_t index) const {
  const std::string instance =
      is_corpus ? trace + ":" + std::to_string(index) : std::to_string(index);
  return "culprit show " + ShellWord(path) + " " + ShellWord(instance) +
         InstanceFlagsText(
             {.automatic = options.extract.always_automatic, .found = options.extract.automatic});
}

namespace {

CausalityInput InputOf(const std::string& path, const Arguments& arguments, GatherOptions options) {
  CausalityInput input;
  input.path = path;
  std::error_code code;
  input.is_corpus = std::filesystem::is_directory(path, code);
  input.default_component = !arguments.Has("--component");
  input.options = std::move(options);
  return input;
}

Result<CausalityInput> Checked(CausalityInput input) {
  if (input.evidence.instances.empty()) return NoInstances(input);
  if (NothingChosen(input.evidence)) return NoComponent(input);
  return input;
}

}  // namespace

Result<CausalityInput> GatherCausality(const std::string& path, const Arguments& arguments,
                                       GatherOptions options, Progress& progress) {
  CausalityInput input = InputOf(path, arguments, std::move(options));
  CULPRIT_ASSIGN(input.evidence,
                 causality::GatherEvidence(path, input.options, progress, &input.gathered));
  return Checked(std::move(input));
}

Result<CausalityInput> GatherCausalityAnywhere(const std::string& path, const Arguments& arguments,
                                               GatherOptions options, Output& output,
                                               const std::string& below) {
  CULPRIT_ASSIGN(const bool wants_run, WantsRun(arguments));
  if (!wants_run) return GatherCausality(path, arguments, std::move(options), output.progress());
  CausalityInput input = InputOf(path, arguments, std::move(options));
  CULPRIT_ASSIGN(scale::RunEvidence found,
                 GatherByRun(path, {.causes = input.options.extract}, input.options.loop(),
                             arguments, output, below));
  input.evidence = std::move(*found.causes);
  return Checked(std::move(input));
}

std::string Counted(uint64_t count, std::string_view one, std::string_view many) {
  return FormatCount(count) + " " + std::string(count == 1 ? one : many);
}

std::string CausalityHead(const CausalityInput& input, const CausalityTextOptions& options) {
  const Evidence& evidence = input.evidence;
  std::string title = report::PlainText(input.path) + ": ";
  if (input.is_corpus) title += Counted(evidence.traces.size(), "trace", "traces") + ", ";
  title += Counted(evidence.instances.size(), "instance", "instances") + ", " +
           FormatDuration(input.total_ns()) + " in all";
  std::vector<report::Fact> rows = {{"component", report::PlainText(input.ComponentText())}};
  const uint64_t automatic = AutomaticTraces(evidence);
  std::string instances = Counted(evidence.scenarios.size(), "scenario", "scenarios");
  if (automatic > 0) {
    instances += ", found automatically";
    if (automatic < evidence.traces.size()) {
      instances += " in " + Counted(automatic, "trace", "traces");
    }
    instances += "; " + FormatDuration(evidence.account.idle_ns) + " of waiting for work left out";
  }
  rows.emplace_back("instances", instances);
  if (evidence.account.instances_left_out > 0) {
    rows.emplace_back("left out",
                      Counted(evidence.account.instances_left_out, "instance", "instances") +
                          " of other scenarios");
  }
  const bool by_module = input.options.extract.component.by == By::kModule;
  if (by_module && evidence.account.waits_without_stack > 0) {
    rows.emplace_back("no stacks", Counted(evidence.account.waits_without_stack, "wait", "waits") +
                                       " without a stack belong to no component");
  }
  if (evidence.account.truncated_instances > 0) {
    rows.emplace_back("truncated",
                      Counted(evidence.account.truncated_instances, "instance", "instances") +
                          " with too many chains: the rest of theirs is missing");
  }
  return report::Heading(title, options.color) + report::Facts(rows, options.color);
}

std::string CausalitySkipped(const CausalityInput& input, const CausalityTextOptions& options) {
  std::string text;
  for (const auto& [what, row] : input.evidence.diagnostics.rows()) {
    text += "  " + FormatCount(row.count) + " x " + report::PlainText(what) + "\n";
  }
  for (const std::string& error : input.evidence.unreadable) {
    text += "  not read: " + report::PlainText(error) + "\n";
  }
  if (text.empty()) return text;
  return "\n" + report::Heading("Damaged or skipped", options.color) + text;
}

void WriteCausalityHead(const CausalityInput& input, JsonWriter& json) {
  const causality::ComponentOptions& component = input.options.extract.component;
  json.Field("path", std::string_view(input.path));
  json.Field("traces", input.evidence.traces.size());
  json.Field("instances", input.evidence.instances.size());
  json.Field("d_scn_ns", input.total_ns());
  json.Field("component", std::string_view(causality::SetName(component)));
  json.Field("by", Name(component.by)).Key("except").BeginArray();
  for (const std::string& glob : component.except) json.String(glob);
  json.EndArray();
  json.Field("automatic_traces", AutomaticTraces(input.evidence));
  json.Field("instances_left_out", input.evidence.account.instances_left_out);
  json.Field("truncated_instances", input.evidence.account.truncated_instances);
}

void WriteCausalitySkipped(const CausalityInput& input, JsonWriter& json) {
  json.Key("skipped").BeginArray();
  for (const auto& [what, row] : input.evidence.diagnostics.rows()) {
    json.BeginObject().Field("what", std::string_view(what)).Field("count", row.count).EndObject();
  }
  json.EndArray().Key("unreadable").BeginArray();
  for (const std::string& error : input.evidence.unreadable) json.String(error);
  json.EndArray();
}

}  // namespace culprit::cli
