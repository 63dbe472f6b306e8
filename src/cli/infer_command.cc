// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "cli/commands.h"
#include "cli/infer_facts.h"
#include "cli/infer_live.h"
#include "episode/profile_file.h"
#include "episode/whole_calls.h"

namespace culprit::cli {
namespace {

using episode::ReadSyscallLog;
using episode::SyscallLog;
using trace::TraceReader;

Error NoSyscalls(const std::string& path, const SyscallLog& log) {
  if (log.other_processes > 0) {
    return {.message = "has system calls, but none of the processes that were asked for",
            .file = path,
            .hint = "--process '*' takes all processes"};
  }
  return {.message = "has no system calls",
          .file = path,
          .hint = "culprit record --syscalls, perf trace record, strace -f or LTTng record them"};
}

// The profile knows whose calls it describes; other processes of a recording of
// the whole machine would only be noise.
Result<SyscallLog> ReadTrace(const TraceReader& reader, const std::string& path, bool given,
                             size_t jobs, InferFacts& facts) {
  const std::string& arch = facts.profile.arch;
  SyscallLog log =
      ReadSyscallLog(reader, {.processes = facts.processes, .default_arch = arch, .jobs = jobs},
                     facts.profile.symbols);
  if (log.syscalls == 0 && !given && log.other_processes > 0) {
    facts.warnings.push_back(path +
                             ": has no process named like those of the profile; all are taken");
    log = ReadSyscallLog(reader, {.default_arch = arch, .jobs = jobs}, facts.profile.symbols);
  }
  if (reader.metadata().arch.empty() && log.named) {
    facts.warnings.push_back(path + ": does not say its architecture; that of the profile, " +
                             arch + ", is taken");
  }
  facts.diagnostics.Merge(log.diagnostics);
  if (log.syscalls == 0) return NoSyscalls(path, log);
  return log;
}

// The verdict of the trace's own stacks, where most calls have one.
std::optional<episode::Profile> StackProfile(const TraceReader& reader, const InferFacts& facts,
                                             const episode::CallNames& whole,
                                             const InferQuestion& question) {
  if (facts.log.with_stack * 2 < facts.log.syscalls) return {};
  episode::ProfileBuilder builder(
      {.processes = facts.processes,
       .owners = {.modules = question.modules, .functions = {}, .unnamed = question.unnamed},
       .episodes = {.max_length = 1},
       .jobs = question.jobs});
  builder.StartWith(facts.profile.symbols);
  builder.Add(reader);
  episode::Profile profile = builder.Finish();
  TakeWhole(whole, profile);
  return profile;
}

// What is told apart on one side only cannot be compared.
episode::CallNames TakeCallsWhole(InferFacts& facts, std::vector<SyscallLog>& normals) {
  std::vector<const SyscallLog*> logs = {&facts.log};
  for (const SyscallLog& normal : normals) logs.push_back(&normal);
  const episode::CallNames whole = CallsToTakeWhole(facts.profile, logs);
  TakeWhole(whole, facts.profile);
  TakeWhole(whole, facts.profile.symbols, facts.log);
  for (SyscallLog& normal : normals) TakeWhole(whole, facts.profile.symbols, normal);
  std::string names;
  for (const std::string& name : whole) names += (names.empty() ? "" : ", ") + name;
  if (!whole.empty()) {
    facts.warnings.push_back("not all sides know the operations of " + names + ": taken whole");
  }
  return whole;
}

void WarnOfBuilds(const TraceReader& reader, InferFacts& facts) {
  for (const std::string& module : OtherBuilds(facts.profile, reader.dictionary())) {
    facts.warnings.push_back("the profile is of another build of " + module +
                             ": functions are matched by name");
  }
}

Result<int> RunInfer(const Arguments& arguments, Output& output) {
  if (arguments.Has("--live") != arguments.operands().empty()) {
    return Error{.message = "infer wants a TRACE, or --live, and not both"};
  }
  if (arguments.Has("--live")) return RunInferLive(arguments, output);
  InferQuestion question;
  question.path = arguments.operands().front();
  question.profile = arguments.Text("--profile");
  question.against = arguments.All("--against");
  question.processes = arguments.All("--process");
  question.modules = arguments.All("--module");
  question.unnamed = arguments.Has("--unnamed");
  if (arguments.Text("--method") == "paper") question.method = episode::Method::kPaper;
  const std::string units = arguments.Text("--units");
  if (units == "gaps") question.units = episode::UnitSource::kGaps;
  if (units == "instances") question.units = episode::UnitSource::kInstances;
  question.jobs = arguments.Number("--jobs");
  CULPRIT_ASSIGN(const InferFacts facts, GatherInference(question));
  for (const std::string& line : facts.warnings) output.Warn(line);
  for (const std::string& line : facts.inference.warnings) output.Warn(line);
  if (arguments.Has("--json")) {
    output.Print(InferJson(facts));
  } else {
    output.Print(InferText(
        facts,
        {.top = arguments.Number("--top"), .width = output.width(), .color = output.color()}));
    if (facts.against.empty()) {
      output.Note("next: give a normal trace of comparable load with --against TRACE");
    }
  }
  return 0;
}

}  // namespace

Result<InferFacts> GatherInference(const InferQuestion& question) {
  InferFacts facts;
  facts.path = question.path;
  facts.profile_path = question.profile;
  facts.against = question.against;
  facts.processes = question.processes;
  const size_t jobs = question.jobs;
  CULPRIT_ASSIGN(facts.profile, episode::ReadProfile(facts.profile_path));
  const bool given = !facts.processes.empty();
  if (!given) facts.processes = facts.profile.processes;
  CULPRIT_ASSIGN(const TraceReader reader, TraceReader::Open(facts.path));
  CULPRIT_ASSIGN(facts.log, ReadTrace(reader, facts.path, given, jobs, facts));
  for (const episode::ThreadLog& thread : facts.log.threads) {
    facts.thread_labels.push_back(reader.dictionary().ThreadLabel(thread.thread));
  }
  WarnOfBuilds(reader, facts);
  std::vector<SyscallLog> normals;
  for (const std::string& against : facts.against) {
    CULPRIT_ASSIGN(const TraceReader other, TraceReader::Open(against));
    CULPRIT_ASSIGN(SyscallLog normal, ReadTrace(other, against, given, jobs, facts));
    normals.push_back(std::move(normal));
  }
  const episode::CallNames whole = TakeCallsWhole(facts, normals);
  const std::optional<episode::Profile> stacks = StackProfile(reader, facts, whole, question);
  episode::InferOptions options;
  options.method = question.method;
  options.units = question.units;
  options.jobs = jobs;
  facts.inference =
      episode::Infer(facts.profile, facts.log, normals, stacks ? &*stacks : nullptr, options);
  return facts;
}

std::string InferFacts::EpisodeText(const episode::Episode& episode) const {
  std::string text;
  for (const episode::Symbol symbol : episode.span()) {
    text += (text.empty() ? "" : " … ") + SymbolText(symbol);
  }
  return text;
}

Command InferCommand() {
  Command command;
  command.name = "infer";
  command.summary = "the functions behind a slow server, from its system calls alone";
  command.operands = "[TRACE]";
  command.max_operands = 1;
  command.examples = {
      {"culprit infer slow.ctrace --profile app.cprof --against normal.ctrace",
       "who makes the calls that a normal run does not make"},
      {"culprit infer slow.ctrace --profile app.cprof --against day.ctrace --against night.ctrace",
       "what any of several normal runs makes is normal"},
      {"culprit infer slow.ctrace --profile app.cprof", "the same, against the profile's totals"},
      {"sudo culprit infer --live --profile app.cprof", "what goes on now, until stopped"},
      {"culprit infer slow.ctrace --profile app.cprof --json | jq -r '.functions[].function'",
       "the names, for a script"}};
  command.flags = {
      {.name = "--profile",
       .letter = 'p',
       .kind = ValueKind::kPath,
       .value = "FILE",
       .help = "which function makes which calls, from culprit profile",
       .required = true},
      {.name = "--against",
       .kind = ValueKind::kPath,
       .value = "TRACE",
       .help = "a normal trace of comparable load, one for each kind of work (may be repeated); "
               "without it the profile's totals"},
      {.name = "--method",
       .kind = ValueKind::kChoice,
       .value = "METHOD",
       .help = "rank by owned excess of calls, or by matched episodes as the paper does",
       .default_text = "excess",
       .choices = {"excess", "paper"}},
      {.name = "--units",
       .kind = ValueKind::kChoice,
       .value = "SOURCE",
       .help = "cut execution units at gaps, or where instances of the trace (units of guards) "
               "begin and end; auto: at instances if there are any",
       .default_text = "auto",
       .choices = {"auto", "gaps", "instances"}},
      {.name = "--process",
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "only processes or threads of such names; without it those of the profile"},
      {.name = "--module",
       .kind = ValueKind::kText,
       .value = "GLOB",
       .help = "where the trace has stacks: modules that are the application"},
      {.name = "--unnamed",
       .help = "where the trace has stacks: frames without a name are functions too"},
      {.name = "--top",
       .letter = 'n',
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "functions shown",
       .default_text = "10"},
      {.name = "--json", .help = "print JSON with all functions; with --live a line a look"},
      {.name = "--live", .help = "no trace: the system calls that are made now, as root"},
      {.name = "--pid",
       .kind = ValueKind::kText,
       .value = "PID",
       .help = "with --live: this process and its children; may be repeated"},
      {.name = "--comm",
       .kind = ValueKind::kText,
       .value = "NAME",
       .help = "with --live: processes of this name, also later ones; up to four; without any "
               "target those of the profile"},
      {.name = "--cgroup",
       .kind = ValueKind::kText,
       .value = "PATH",
       .help = "with --live: the processes of this cgroup, also those that join it later"},
      {.name = "--system", .letter = 'a', .help = "with --live: every process, by --process"},
      {.name = "--window",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "with --live: how much of the past counts",
       .default_text = "90s"},
      {.name = "--every",
       .kind = ValueKind::kDuration,
       .value = "TIME",
       .help = "with --live: from one look to the next",
       .default_text = "5s"},
      {.name = "--count",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "with --live: end after this many looks; 0: go on",
       .default_text = "0"},
      {.name = "--budget",
       .kind = ValueKind::kText,
       .value = "SHARE",
       .help = "with --live: what counting may cost of the processes' CPU time; 0: no bound",
       .default_text = "3%"},
      {.name = "--jobs",
       .letter = 'j',
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "use N threads; 0: all there are",
       .default_text = "0"}};
  command.details =
      "Compares the trace with normal ones of the same work, takes what system calls there are "
      "too many of, and shares them out over the functions that make such calls according to the "
      "profile. Functions that cannot be told apart are named together; what no profiled function "
      "makes is [not in profile].\n\n"
      "With --live system calls are counted in the kernel, by kind, and nothing else is recorded: "
      "the same ranking over the last 90 seconds, looked at every 5. A terminal shows every look; "
      "elsewhere a look is printed when it names others than the last one. q, or a signal, ends "
      "it.\n\n"
      "System calls cannot show causes that only use the CPU, functions that ran before the "
      "recording, or who holds a lock; culprit mine can. docs/inference.md explains every number.";
  command.run = &RunInfer;
  return command;
}

}  // namespace culprit::cli
