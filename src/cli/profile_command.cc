// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/glob.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/engine_options.h"
#include "cli/gather_flags.h"
#include "corpus/corpus.h"
#include "episode/profile_file.h"
#include "report/plain_text.h"
#include "report/table.h"
#include "scale/profile_verbs.h"

namespace culprit::cli {
namespace {

using episode::Profile;
using episode::ProfiledFunction;
using report::Table;

constexpr auto kRight = Table::Align::kRight;

Overwrite OverwriteOf(const Arguments& arguments) {
  return arguments.Has("--force") ? Overwrite::kAllow : Overwrite::kRefuse;
}

Flag OutputFlag() {
  return {.name = "--output",
          .letter = 'o',
          .kind = ValueKind::kPath,
          .value = "FILE",
          .help = "write the profile there",
          .required = true};
}

Flag ForceFlag() { return {.name = "--force", .help = "overwrite FILE if it exists"}; }

uint64_t Episodes(const Profile& profile) {
  uint64_t episodes = 0;
  for (const ProfiledFunction& function : profile.functions) episodes += function.episodes.size();
  return episodes;
}

std::string Summary(const Profile& profile, const std::string& path, bool color) {
  std::string processes;
  for (const std::string& name : profile.processes) {
    processes += (processes.empty() ? "" : ", ") + report::PlainText(name);
  }
  const auto capped = static_cast<uint64_t>(
      std::count_if(profile.functions.begin(), profile.functions.end(),
                    [](const ProfiledFunction& function) { return function.capped; }));
  std::vector<report::Fact> rows = {
      {"processes", processes},
      {"traces", FormatCount(profile.traces)},
      {"system calls", FormatCount(profile.syscalls) + ", " +
                           FormatShare(static_cast<int64_t>(profile.owned),
                                       static_cast<int64_t>(profile.syscalls)) +
                           " with a function"},
      {"kinds of calls", FormatCount(profile.totals.size())},
      {"functions", FormatCount(profile.functions.size())},
      {"episodes", FormatCount(Episodes(profile))}};
  if (!profile.arch.empty()) rows.emplace_back("arch", report::PlainText(profile.arch));
  if (capped > 0) {
    rows.emplace_back("cut short", FormatCount(capped) +
                                       " functions have too many candidates: their episodes are "
                                       "shorter than 4");
  }
  return report::Heading(report::PlainText(path) + ": profile", color) + report::Facts(rows, color);
}

// ---- profile

Result<std::vector<std::string>> TracesOf(const std::vector<std::string>& operands) {
  std::vector<std::string> paths;
  for (const std::string& operand : operands) {
    std::error_code code;
    if (!std::filesystem::is_directory(operand, code)) {
      paths.push_back(operand);
      continue;
    }
    CULPRIT_ASSIGN(const corpus::Corpus corpus, corpus::Corpus::Open(operand));
    CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> rows, corpus.List());
    for (const corpus::TraceRow& row : rows) paths.push_back(corpus.TracePath(row));
  }
  return paths;
}

Error NothingOwned(const episode::ProfilePart& facts) {
  if (facts.syscalls == 0) {
    return {.message = "there are no system calls of such processes in the traces",
            .hint =
                "culprit record --syscalls records them with stacks; culprit info TRACE shows "
                "what a trace has"};
  }
  if (facts.with_stack == 0 && facts.function_calls == 0) {
    return {.message =
                "no system call has a user stack, and no function entries were recorded, so "
                "nobody owns a call",
            .hint =
                "record with culprit record --syscalls, culprit guard calls, or perf record -g -e "
                "raw_syscalls:sys_enter"};
  }
  return {.message = "no frame of the stacks is of the application",
          .hint = "--module GLOB says which modules are; --unnamed takes frames without a name"};
}

// As long as the sequences fit, which are there twice while equal ones are put together.
Status CheckFits(const episode::ProfileBuilder& builder, uint64_t allowed_bytes, size_t read,
                 size_t traces) {
  const uint64_t bytes = 2 * builder.sequence_bytes();
  if (allowed_bytes == 0 || bytes <= allowed_bytes) return {};
  return Error{.message = "the sequences of system calls need " + FormatBytes(bytes) +
                          " of memory after " + FormatCount(read) + " of " + FormatCount(traces) +
                          (traces == 1 ? " trace" : " traces") + ", allowed are " +
                          FormatBytes(allowed_bytes),
               .hint = "cut a corpus into parts with --shards 64, or allow more with --memory"};
}

// The profile, and what the traces came to.
Result<scale::RunProfile> ProfileHere(const Arguments& arguments,
                                      const episode::ProfileOptions& options, Output& output) {
  CULPRIT_ASSIGN(const std::vector<std::string> paths, TracesOf(arguments.operands()));
  CULPRIT_ASSIGN(const uint64_t memory_bytes, ReadMemoryFlag(arguments));
  episode::ProfileBuilder builder(options);
  size_t read = 0;
  std::optional<trace::TraceReader> syscalls;
  if (arguments.Has("--syscalls")) {
    auto opened = trace::TraceReader::Open(arguments.Text("--syscalls"));
    if (!opened.ok()) return opened.error();
    if (paths.size() != 1) {
      return Error{.message = "--syscalls goes with one trace of functions",
                   .hint = "culprit profile merge puts several profiles together"};
    }
    syscalls.emplace(std::move(opened).value());
  }
  output.progress().Start("reading", "traces", paths.size());
  for (const std::string& path : paths) {
    CULPRIT_ASSIGN(const trace::TraceReader reader, trace::TraceReader::Open(path));
    if (syscalls) {
      CULPRIT_TRY(builder.Add(*syscalls, reader));
    } else {
      builder.Add(reader);
    }
    CULPRIT_TRY(CheckFits(builder, memory_bytes, ++read, paths.size()));
    output.progress().Advance();
  }
  output.progress().Finish();
  episode::ProfilePart part = builder.TakePart();
  scale::RunProfile made;
  AddPart(
      part, [](const episode::FunctionName&) { return false; }, made.facts);
  made.profile = MineProfile(std::move(part), options.episodes, options.jobs);
  return made;
}

Result<scale::RunProfile> ProfileByRun(const Arguments& arguments,
                                       const episode::ProfileOptions& options, Output& output) {
  if (arguments.Has("--syscalls")) {
    return Error{.message = "--syscalls goes with one trace of functions, not with shards"};
  }
  if (arguments.operands().size() != 1) {
    return Error{.message = "only one corpus can be cut into shards",
                 .hint = "add the others to it with culprit corpus add, or merge profiles"};
  }
  scale::RunProfile made;
  CULPRIT_TRY(CarryOut(arguments.operands().front(), {.profile = options}, {.jobs = options.jobs},
                       arguments, output, [&](const scale::RunFolder& run) -> Status {
                         CULPRIT_ASSIGN(made, scale::ReadProfileResult(run));
                         return {};
                       }));
  return made;
}

Result<int> RunProfile(const Arguments& arguments, Output& output) {
  const episode::ProfileOptions options{.processes = arguments.All("--process"),
                                        .owners = {.modules = arguments.All("--module"),
                                                   .functions = arguments.All("--function"),
                                                   .unnamed = arguments.Has("--unnamed")},
                                        .episodes = {},
                                        .jobs = arguments.Number("--jobs")};
  CULPRIT_ASSIGN(const bool wants_run, WantsRun(arguments));
  CULPRIT_ASSIGN(const scale::RunProfile made, wants_run ? ProfileByRun(arguments, options, output)
                                                         : ProfileHere(arguments, options, output));
  for (const auto& [what, row] : made.facts.diagnostics.rows()) {
    output.Warn(FormatCount(row.count) + " x " + what);
  }
  if (!made.facts.named) {
    output.Warn("a trace does not say its architecture: its system calls have no names");
  }
  const Profile& profile = made.profile;
  if (profile.functions.empty()) return NothingOwned(made.facts);
  const std::string file = arguments.Text("--output");
  CULPRIT_TRY(episode::WriteProfile(profile, file, OverwriteOf(arguments)));
  output.Print(Summary(profile, file, output.color()));
  output.Note("next: culprit infer TRACE --profile " + file + " --against NORMAL");
  return 0;
}

Command ProfileItself() {
  Command command;
  command.name = "profile";
  command.summary = "learn which function of a program makes which system calls";
  command.operands = "TRACE|CORPUS...";
  command.min_operands = 1;
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit profile staging.ctrace -o app.cprof", "from one trace with stacks"},
      {"culprit profile fleet --process nginx -o nginx.cprof", "from all traces of a corpus"},
      {"culprit profile t.ctrace --module 'libapr*' --module httpd -o httpd.cprof",
       "only these modules are the application"},
      {"culprit profile functions.ctrace --syscalls recorded.ctrace -o app.cprof",
       "functions of uftrace or LTTng-UST, system calls recorded beside them"}};
  command.flags = {OutputFlag(),
                   ForceFlag(),
                   {.name = "--syscalls",
                    .kind = ValueKind::kPath,
                    .value = "TRACE",
                    .help = "take the system calls from this trace of the same time and clock"},
                   {.name = "--process",
                    .kind = ValueKind::kText,
                    .value = "GLOB",
                    .help = "only processes or threads of such names (may be repeated)"},
                   {.name = "--module",
                    .kind = ValueKind::kText,
                    .value = "GLOB",
                    .help = "modules that are the application (may be repeated); without it all "
                            "but the kernel, the C library and its kin"},
                   {.name = "--function",
                    .kind = ValueKind::kText,
                    .value = "GLOB",
                    .help = "only functions of such names; others fall to their callers"},
                   {.name = "--unnamed", .help = "frames without a name are functions too"},
                   {.name = "--jobs",
                    .letter = 'j',
                    .kind = ValueKind::kNumber,
                    .value = "N",
                    .help = "use N threads; 0: all there are",
                    .default_text = "0"},
                   {.name = "--memory",
                    .kind = ValueKind::kText,
                    .value = "SIZE",
                    .help = "for sequences of calls, else a quarter of the machine's; where they "
                            "need more it stops and says what to do"}};
  for (Flag& flag : EngineFlags()) command.flags.push_back(std::move(flag));
  command.details =
      "The traces must show who makes the calls: system calls with user stacks, or function "
      "entries and exits on the same threads (culprit guard calls, culprit record --functions, "
      "LTTng-UST). Where another tool recorded the functions, --syscalls names a recording of the "
      "system calls beside it. Times are not kept, so a profile of a test machine serves in "
      "production. docs/inference.md explains it.";
  command.run = &RunProfile;
  return command;
}

// ---- profile merge

Result<int> RunMerge(const Arguments& arguments, Output& output) {
  const std::vector<std::string>& paths = arguments.operands();
  CULPRIT_ASSIGN(Profile merged, episode::ReadProfile(paths.front()));
  for (size_t i = 1; i < paths.size(); ++i) {
    CULPRIT_ASSIGN(const Profile next, episode::ReadProfile(paths[i]));
    if (!merged.arch.empty() && !next.arch.empty() && merged.arch != next.arch) {
      output.Warn(paths[i] + ": is of " + next.arch + ", those before of " + merged.arch);
    }
    merged = episode::MergeProfiles(merged, next);
  }
  const std::string file = arguments.Text("--output");
  CULPRIT_TRY(episode::WriteProfile(merged, file, OverwriteOf(arguments)));
  output.Print(Summary(merged, file, output.color()));
  return 0;
}

Command ProfileMerge() {
  return {.name = "profile merge",
          .summary = "add up profiles",
          .operands = "PROFILE...",
          .min_operands = 2,
          .max_operands = SIZE_MAX,
          .examples = {{"culprit profile merge mon.cprof tue.cprof -o week.cprof",
                        "one profile of two days"}},
          .flags = {OutputFlag(), ForceFlag()},
          .details =
              "Counts add up, by build-id and function. An episode that was rare in one "
              "profile counts zero there, so its sum is a lower bound.",
          .run = &RunMerge};
}

// ---- profile show

std::string CountsText(const Profile& profile, std::vector<episode::SymbolCount> counts) {
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  std::string text;
  for (const episode::SymbolCount& row : counts) {
    if (!text.empty()) text += " ";
    text += std::string(profile.symbols.Name(row.symbol)) + "=" + std::to_string(row.count);
  }
  return text;
}

std::string ShowText(const Profile& profile, const std::vector<const ProfiledFunction*>& functions,
                     size_t top, Output& output) {
  Table table;
  table.Column("inclusive", kRight).Column("itself", kRight).Column("episodes", kRight);
  table.Column("function").Column("calls it makes itself", Table::Align::kLeft, true);
  for (size_t i = 0; i < functions.size() && i < top; ++i) {
    const ProfiledFunction& function = *functions[i];
    table.Row({FormatCount(function.Inclusive()), FormatCount(function.Innermost()),
               FormatCount(function.episodes_found), function.name.Label(),
               CountsText(profile, function.innermost)});
  }
  std::string text = table.ToText(output.width(), output.color());
  if (functions.size() > top) {
    text +=
        report::Note("… and " + std::to_string(functions.size() - top) + " more", output.color());
  }
  return text;
}

void WriteCounts(const Profile& profile, std::string_view key,
                 const std::vector<episode::SymbolCount>& counts, JsonWriter& json) {
  json.Key(key).BeginObject();
  for (const auto& row : counts) json.Field(profile.symbols.Name(row.symbol), row.count);
  json.EndObject();
}

std::string ShowJson(const Profile& profile,
                     const std::vector<const ProfiledFunction*>& functions) {
  JsonWriter json;
  json.BeginObject().Field("arch", std::string_view(profile.arch));
  json.Field("traces", profile.traces).Field("syscalls", profile.syscalls);
  json.Field("owned", profile.owned).Key("processes").BeginArray();
  for (const std::string& name : profile.processes) json.String(name);
  json.EndArray().Key("functions").BeginArray();
  for (const ProfiledFunction* function : functions) {
    json.BeginObject().Field("function", std::string_view(function->name.Label()));
    json.Field("build_id", std::string_view(function->name.build_id));
    WriteCounts(profile, "innermost", function->innermost, json);
    WriteCounts(profile, "inclusive", function->inclusive, json);
    json.Field("bound", function->bound).Field("capped", function->capped);
    json.Key("episodes").BeginArray();
    for (const episode::EpisodeCount& row : function->episodes) {
      json.BeginObject().Key("symbols").BeginArray();
      for (const episode::Symbol symbol : row.episode.span()) {
        json.String(profile.symbols.Name(symbol));
      }
      json.EndArray().Field("count", row.count).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

Result<int> RunShowProfile(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands().front();
  CULPRIT_ASSIGN(const Profile profile, episode::ReadProfile(path));
  const std::vector<std::string> globs = arguments.All("--function");
  std::vector<const ProfiledFunction*> functions;
  for (const ProfiledFunction& function : profile.functions) {
    const bool wanted =
        globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
          return MatchesGlob(glob, function.name.function) ||
                 MatchesGlob(glob, function.name.Label());
        });
    if (wanted) functions.push_back(&function);
  }
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto* a, const auto* b) { return a->Inclusive() > b->Inclusive(); });
  if (arguments.Has("--json")) {
    output.Print(ShowJson(profile, functions));
    return 0;
  }
  output.Print(Summary(profile, path, output.color()) + "\n" +
               ShowText(profile, functions, arguments.Number("--top"), output));
  return 0;
}

Command ProfileShow() {
  return {.name = "profile show",
          .summary = "what a profile knows",
          .operands = "PROFILE",
          .min_operands = 1,
          .max_operands = 1,
          .examples = {{"culprit profile show app.cprof", "its functions and their calls"},
                       {"culprit profile show app.cprof --function '*accept*' --json",
                        "some of them with all episodes"}},
          .flags = {{.name = "--function",
                     .kind = ValueKind::kText,
                     .value = "GLOB",
                     .help = "only functions of such names (may be repeated)"},
                    {.name = "--top",
                     .letter = 'n',
                     .kind = ValueKind::kNumber,
                     .value = "N",
                     .help = "functions shown",
                     .default_text = "40"},
                    {.name = "--json", .help = "print JSON with all functions and episodes"}},
          .run = &RunShowProfile};
}

}  // namespace

std::vector<Command> ProfileCommands() { return {ProfileItself(), ProfileMerge(), ProfileShow()}; }

}  // namespace culprit::cli
