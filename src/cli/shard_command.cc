// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/json_writer.h"
#include "base/large_memory.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/gather_flags.h"
#include "corpus/gather.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "scale/engine.h"
#include "scale/index_ranges.h"
#include "scale/verbs.h"

namespace culprit::cli {
namespace {

using report::Table;
using scale::RunFolder;
using scale::Verb;

constexpr size_t kLogsShown = 10;
constexpr size_t kLogLines = 5;

// ---- shard map, reduce, finalize

// What Slurm gave this task; else all that may be used.
size_t JobsOf(const Arguments& arguments) {
  if (arguments.Has("--jobs")) return arguments.Number("--jobs");
  for (const char* name : {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}) {
    const char* given = std::getenv(name);
    if (given != nullptr) return ParseUnsigned(given).value_or(0);
  }
  return 0;
}

// Half of what Slurm gave it, where it gave a bound: evidence needs room too.
uint64_t MemoryOf(const Arguments& arguments, const GatherBounds& bounds) {
  constexpr uint64_t kBytesAMegabyte = 1 << 20;
  constexpr uint64_t kMostMegabytes = uint64_t{1} << 40;
  const char* given = std::getenv("SLURM_MEM_PER_NODE");
  if (arguments.Has("--memory") || given == nullptr) return bounds.memory_bytes;
  const uint64_t megabytes = ParseUnsigned(given).value_or(0);
  if (megabytes == 0 || megabytes > kMostMegabytes) return bounds.memory_bytes;
  return std::min(bounds.memory_bytes, megabytes * kBytesAMegabyte / 2);
}

Result<int> RunVerb(Verb verb, const Arguments& arguments, Output& output) {
  const std::vector<std::string>& operands = arguments.operands();
  uint64_t index = 0;
  if (operands.size() > 1) {
    const auto number = ParseUnsigned(operands[1]);
    if (!number) return Error{.message = "'" + operands[1] + "' is no number of a task"};
    index = *number;
  }
  CULPRIT_ASSIGN(const RunFolder run, RunFolder::Open(operands[0]));
  const std::string name = std::string(VerbName(verb)) + " " + std::to_string(index);
  if (index < run.Count(verb) && run.TaskDone(verb, index) && !arguments.Has("--again")) {
    output.Note(name + " is done already");
    return 0;
  }
  CULPRIT_ASSIGN(const GatherBounds bounds, ReadGatherFlags(arguments));
  const scale::TaskOptions task{.jobs = JobsOf(arguments),
                                .memory_bytes = MemoryOf(arguments, bounds),
                                .use_summaries = bounds.use_summaries};
  LargeMemory::SetBound(corpus::TableShare(task.memory_bytes));
  CULPRIT_TRY(RunTask(run, verb, index, task, output.progress()));
  output.Note(name + ": " + run.OutputPath(verb, index));
  return 0;
}

Result<int> RunMap(const Arguments& arguments, Output& output) {
  return RunVerb(Verb::kMap, arguments, output);
}
Result<int> RunReduce(const Arguments& arguments, Output& output) {
  return RunVerb(Verb::kReduce, arguments, output);
}
Result<int> RunFinalize(const Arguments& arguments, Output& output) {
  return RunVerb(Verb::kFinalize, arguments, output);
}

Command VerbCommand(std::string_view name, std::string_view summary, Example example,
                    Result<int> (*run)(const Arguments&, Output&)) {
  Command command;
  command.name = name;
  command.summary = summary;
  command.operands = "RUN INDEX";
  command.min_operands = 2;
  command.max_operands = 2;
  command.examples = {example};
  command.flags = {
      {"--jobs", 'j', ValueKind::kNumber, "N", "threads to use; else what Slurm gave, or all"},
      {.name = "--again", .help = "also if its output is there and whole"}};
  for (Flag& flag : GatherFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "Does one task of a run that `analyze --engine` or `analyze --run` planned. Any host that "
      "has the run folder and the corpus under the same paths can do it, at any time and more "
      "than once: the output is put in place whole.";
  command.run = run;
  return command;
}

// ---- shard status

struct StageState {
  Verb verb = Verb::kMap;
  uint64_t count = 0;
  std::set<uint64_t> missing;
};

std::vector<StageState> StatesOf(const RunFolder& run) {
  std::vector<StageState> states;
  for (const Verb verb : {Verb::kMap, Verb::kReduce, Verb::kFinalize}) {
    StageState state{.verb = verb, .count = run.Count(verb)};
    std::vector<uint8_t> done(state.count);
    ParallelFor(done.size(), 0, [&](size_t i) { done[i] = run.TaskDone(verb, i) ? 1 : 0; });
    for (uint64_t i = 0; i < state.count; ++i) {
      if (done[i] == 0) state.missing.insert(i);
    }
    states.push_back(std::move(state));
  }
  return states;
}

void PrintStatus(const std::vector<StageState>& states, Output& output) {
  Table table;
  table.Column("stage").Column("done", Table::Align::kRight);
  table.Column("tasks", Table::Align::kRight).Column("missing", Table::Align::kLeft, true);
  for (const StageState& state : states) {
    table.Row({std::string(VerbName(state.verb)), FormatCount(state.count - state.missing.size()),
               FormatCount(state.count), scale::IndexRanges(state.missing)});
  }
  output.Print(table.ToText(output.width(), output.color()));
}

// Logs of tasks that were begun and are not done.
void PrintLogs(const RunFolder& run, const std::vector<StageState>& states, Output& output) {
  size_t shown = 0;
  for (const StageState& state : states) {
    for (const uint64_t index : state.missing) {
      const std::string path = run.path() + "/" + scale::TaskLog(state.verb, index);
      const std::vector<std::string> lines = scale::LastLines(path, kLogLines);
      if (lines.empty()) continue;
      if (++shown > kLogsShown) {
        output.Print("\n(further logs are in " + run.path() + "/logs)\n");
        return;
      }
      output.Print("\n" + path + "\n");
      for (const std::string& line : lines) output.Print("  " + report::PlainText(line) + "\n");
    }
  }
}

void PrintStatusJson(const std::vector<StageState>& states, Output& output) {
  JsonWriter json;
  json.BeginObject().Key("stages").BeginArray();
  for (const StageState& state : states) {
    json.BeginObject().Field("verb", VerbName(state.verb)).Field("tasks", state.count);
    json.Field("done", state.count - state.missing.size()).Key("missing").BeginArray();
    for (const uint64_t index : state.missing) json.Uint(index);
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  output.Print(json.Take() + "\n");
}

Result<int> RunStatus(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const RunFolder run, RunFolder::Open(arguments.operands().front()));
  const std::vector<StageState> states = StatesOf(run);
  if (arguments.Has("--json")) {
    PrintStatusJson(states, output);
  } else {
    PrintStatus(states, output);
    PrintLogs(run, states, output);
  }
  return states.back().missing.empty() ? 0 : 1;
}

Command StatusCommand() {
  Command command;
  command.name = "shard status";
  command.summary = "what of a run is done, and the logs of what is not";
  command.operands = "RUN";
  command.min_operands = 1;
  command.max_operands = 1;
  command.examples = {{"culprit shard status /shared/run", "how far it is, and what went wrong"}};
  command.flags = {{.name = "--json", .help = "print it as JSON"}};
  command.details =
      "Reads and verifies every output; works while a run is under way. The exit code is 0 when "
      "the run is whole.";
  command.run = &RunStatus;
  return command;
}

}  // namespace

std::vector<Command> ShardCommands() {
  return {
      VerbCommand("shard map", "read the traces of one shard of a run",
                  {"culprit shard map /shared/run 17", "what a Slurm job does"}, &RunMap),
      VerbCommand("shard reduce", "add up the shards of one part of a run",
                  {"culprit shard reduce /shared/run 0", "when its shards are done"}, &RunReduce),
      VerbCommand("shard finalize", "add up the parts of a run",
                  {"culprit shard finalize /shared/run 0", "when all parts are done"},
                  &RunFinalize),
      StatusCommand()};
}

}  // namespace culprit::cli
