// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_options.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/parallel.h"
#include "base/program.h"
#include "corpus/corpus.h"
#include "corpus/sealed_bytes.h"
#include "mine/subtree.h"
#include "scale/command_engine.h"
#include "scale/pattern_verbs.h"
#include "scale/slurm_engine.h"
#include "scale/thread_engine.h"
#include "trace/trace_reader.h"

namespace culprit::cli {
namespace {

using scale::EngineControl;
using scale::StageOutcome;

constexpr size_t kFailuresShown = 10;

// Mining reads some million frames of distinct stacks in a second on a core; a task
// should last longer than it takes a scheduler to start it.
constexpr uint64_t kFramesMinedHere = 50'000'000;
constexpr uint64_t kFramesAPiece = 10'000'000;
constexpr uint64_t kMostPieces = 256;
constexpr uint64_t kMostAsked = 10'000;

// Signal handlers can only reach globals.
volatile std::sig_atomic_t g_stop_run = 0;

// For the time of a run the first SIGINT or SIGTERM only asks it to stop, so that
// jobs elsewhere are cancelled; the second is as ever.
class RunSignals {
 public:
  RunSignals() {
    g_stop_run = 0;
    struct sigaction stop = {};
    stop.sa_handler = [](int) { g_stop_run = 1; };
    stop.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &stop, &old_[0]);
    sigaction(SIGTERM, &stop, &old_[1]);
  }
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;
  ~RunSignals() {
    sigaction(SIGINT, &old_[0], nullptr);
    sigaction(SIGTERM, &old_[1], nullptr);
  }

 private:
  std::array<struct sigaction, 2> old_ = {};
};

std::vector<std::string> HostsOf(const Arguments& arguments) {
  std::vector<std::string> hosts;
  for (const std::string& value : arguments.All("--hosts")) {
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view host = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), host.size() + 1));
      if (!host.empty()) hosts.emplace_back(host);
    }
  }
  return hosts;
}

Result<std::unique_ptr<scale::Engine>> MakeEngine(const Arguments& arguments,
                                                  const corpus::GatherOptions& bounds,
                                                  EngineControl control) {
  const std::string engine = arguments.Text("--engine");
  if (engine == "threads")
    return {std::make_unique<scale::ThreadEngine>(bounds.jobs, std::move(control))};
  std::string program = arguments.Text("--program");
  if (program.empty()) {
    CULPRIT_ASSIGN(program, OwnProgram());
  }
  std::vector<std::string> flags;
  if (!bounds.use_summaries) flags.emplace_back("--no-summaries");
  if (engine == "slurm") {
    return {std::make_unique<scale::SlurmEngine>(
        scale::SlurmOptions{.program = std::move(program),
                            .partition = arguments.Text("--partition"),
                            .time = arguments.Text("--time"),
                            .account = arguments.Text("--account"),
                            .more = arguments.All("--sbatch"),
                            .task_flags = flags},
        std::move(control))};
  }
  CULPRIT_ASSIGN(scale::CommandTemplate command,
                 scale::CommandTemplate::Parse(arguments.Text("--command")));
  const std::vector<std::string> hosts = HostsOf(arguments);
  if (command.uses_host() == hosts.empty()) {
    return Error{.message = hosts.empty() ? "--command has {host}, but no --hosts are given"
                                          : "--hosts are given, but --command has no {host}"};
  }
  return {std::make_unique<scale::CommandEngine>(
      std::move(command),
      scale::CommandOptions{
          .program = std::move(program), .hosts = hosts, .task_flags = flags, .slots = bounds.jobs},
      std::move(control))};
}

void TellFailures(const scale::Stage& stage, const StageOutcome& outcome, Output& output) {
  const auto& failures = outcome.failures;
  for (size_t i = 0; i < std::min(failures.size(), kFailuresShown); ++i) {
    const scale::TaskFailure& failure = failures[i];
    std::string line = std::string(VerbName(stage.verb)) + " " + std::to_string(failure.index);
    line += " failed";
    if (failure.attempts > 1) line += " " + std::to_string(failure.attempts) + " times";
    output.Warn(line + ": " + failure.why);
    if (!failure.log.empty()) output.Note("  its log ends with (" + failure.log + ")");
    for (const std::string& text : failure.last_lines) output.Note("    " + text);
  }
  if (failures.size() > kFailuresShown) {
    output.Note("  and " + std::to_string(failures.size() - kFailuresShown) + " more");
  }
}

Status RunStages(const scale::RunFolder& run, const scale::TaskOptions& task, scale::Engine& engine,
                 Output& output) {
  for (const scale::Stage& stage : scale::StagesOf(run, task)) {
    CULPRIT_ASSIGN(const StageOutcome outcome, engine.Run(run.path(), stage, output.progress()));
    TellFailures(stage, outcome, output);
    CULPRIT_TRY(ToStatus(outcome, stage, run.path()));
    std::string line = std::string(VerbName(stage.verb)) + ": " + std::to_string(stage.count) +
                       (stage.count == 1 ? " task" : " tasks");
    if (outcome.found_done != 0) line += ", " + std::to_string(outcome.found_done) + " done before";
    if (outcome.repeated != 0) line += ", " + std::to_string(outcome.repeated) + " repeated";
    output.Note(line);
  }
  return {};
}

// All stages of a run, by the engine that the flags ask for.
Status RunAll(const scale::RunFolder& run, const corpus::GatherOptions& bounds,
              const Arguments& arguments, Output& output) {
  const RunSignals signals;
  EngineControl control{.stop = [] { return g_stop_run != 0; },
                        .note = [&](const std::string& line) { output.Warn(line); }};
  CULPRIT_ASSIGN(const std::unique_ptr<scale::Engine> engine,
                 MakeEngine(arguments, bounds, std::move(control)));
  output.Note("run: " + run.path());
  // Tasks are many, so each has one thread, and its part of the memory.
  const size_t at_a_time = bounds.jobs == 0 ? HardwareThreads() : bounds.jobs;
  const scale::TaskOptions task{.jobs = 1,
                                .memory_bytes = bounds.memory_bytes / at_a_time,
                                .use_summaries = bounds.use_summaries};
  return RunStages(run, task, *engine, output);
}

// Beside the corpus, because that is on a disk that all hosts see; the name follows
// from the plan, so the same command finds it again.
std::string DefaultRunFolder(const scale::Plan& plan) {
  std::string corpus = plan.corpus;
  while (corpus.size() > 1 && corpus.ends_with('/')) corpus.pop_back();
  return corpus + ".run-" + corpus::ShortDigest(PlanToJson(plan)).substr(0, 12);
}

// How many pieces mining is cut into; 0: it is done here.
uint64_t PiecesOf(const mine::WeightedSequences& database, const Arguments& arguments) {
  if (arguments.Has("--subtrees")) return std::min(arguments.Number("--subtrees"), kMostAsked);
  if (arguments.Text("--engine") == "threads") return 0;
  const uint64_t frames = database.symbols.size();
  return frames < kFramesMinedHere ? 0 : std::min(frames / kFramesAPiece, kMostPieces);
}

// The search holds the stacks once more, at most; in pieces, those of one piece.
uint64_t PiecesThatFit(const mine::WeightedSequences& database,
                       const corpus::GatherOptions& bounds) {
  const uint64_t bytes = database.symbols.size() * sizeof(mine::Symbol) + database.size() * 24;
  if (bounds.memory_bytes == 0) return 1;
  return std::min(1 + bytes / bounds.memory_bytes, kMostPieces);
}

Result<mine::Subtree> MineByRun(const std::string& corpus, const mine::WeightedSequences& database,
                                const scale::PatternsPlan& patterns,
                                const corpus::GatherOptions& bounds, const Arguments& arguments,
                                Output& output) {
  const scale::Plan plan = scale::MakePatternsPlan(corpus, database, patterns);
  const bool keep = arguments.Has("--run");
  const std::string folder =
      keep ? arguments.Text("--run") + "/patterns-" + plan.patterns->database.substr(0, 12)
           : DefaultRunFolder(plan);
  CULPRIT_ASSIGN(const scale::RunFolder run, scale::CreatePatternsRun(folder, plan, database));
  CULPRIT_TRY(RunAll(run, bounds, arguments, output));
  CULPRIT_ASSIGN(mine::Subtree found, scale::ReadPatternsResult(run));
  std::error_code code;
  if (!keep) std::filesystem::remove_all(folder, code);
  return found;
}

Status CheckIsFolder(const std::string& corpus) {
  std::error_code code;
  if (std::filesystem::is_directory(corpus, code)) return {};
  return Error{.message = "only a corpus can be cut into shards",
               .file = corpus,
               .hint = "leave out --engine, --run and --shards"};
}

}  // namespace

std::vector<Flag> MiningEngineFlags() {
  std::vector<Flag> flags = EngineFlags();
  flags.push_back({"--subtrees", 0, ValueKind::kNumber, "N",
                   "mine as N tasks of the engine; else as many as the stacks are worth"});
  return flags;
}

std::vector<Flag> EngineFlags() {
  return {{"--engine",
           0,
           ValueKind::kChoice,
           "E",
           "where traces are read: here, by Slurm jobs, by a launcher of your own",
           "threads",
           {"threads", "slurm", "command"}},
          {"--run", 0, ValueKind::kPath, "FOLDER",
           "keep what the shards put out there, and go on from it"},
          {"--shards", 0, ValueKind::kNumber, "N", "cut the corpus into about N shards"},
          {"--partition", 0, ValueKind::kText, "NAME", "Slurm's partition"},
          {"--time", 0, ValueKind::kText, "T", "Slurm's time limit of one shard: 30, 1:30:00"},
          {"--account", 0, ValueKind::kText, "NAME", "Slurm's account"},
          {"--sbatch", 0, ValueKind::kText, "WORD",
           "one more word for sbatch: --sbatch=--mem=4G; may be repeated"},
          {"--command", 0, ValueKind::kText, "TEMPLATE", "the launcher: 'ssh {host} {command}'"},
          {"--hosts", 0, ValueKind::kText, "LIST", "for {host}: a,b,c"},
          {"--program", 0, ValueKind::kText, "PATH",
           "culprit as the hosts find it; else the path of this one"}};
}

Result<bool> WantsRun(const Arguments& arguments) {
  const std::string engine = arguments.Text("--engine");
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOnlyWith = {
      {{"--partition", "slurm"},
       {"--time", "slurm"},
       {"--account", "slurm"},
       {"--sbatch", "slurm"},
       {"--command", "command"},
       {"--hosts", "command"}}};
  for (const auto& [flag, only] : kOnlyWith) {
    if (arguments.Has(flag) && engine != only) {
      return Error{.message = std::string(flag) + " goes with --engine " + std::string(only)};
    }
  }
  if (engine == "command" && !arguments.Has("--command")) {
    return Error{.message = "--engine command needs --command",
                 .hint = "for example --command 'ssh {host} {command}' --hosts a,b,c"};
  }
  if (arguments.Has("--shards") && arguments.Number("--shards") == 0) {
    return Error{.message = "--shards must be at least 1"};
  }
  return engine != "threads" || arguments.Has("--run") || arguments.Has("--shards");
}

Status CheckSource(const std::string& path, const Arguments& arguments) {
  CULPRIT_ASSIGN(const bool wants_run, WantsRun(arguments));
  if (wants_run) CULPRIT_TRY(CheckIsFolder(path));
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    CULPRIT_TRY(corpus::Corpus::Open(path));
  } else {
    CULPRIT_TRY(trace::TraceReader::Open(path));
  }
  return {};
}

Status CarryOut(const std::string& corpus, scale::PlanOptions options,
                const corpus::GatherOptions& bounds, const Arguments& arguments, Output& output,
                const std::function<Status(const scale::RunFolder&)>& read,
                const std::string& below) {
  CULPRIT_TRY(CheckIsFolder(corpus));
  options.max_trace_bytes = bounds.max_trace_bytes;
  if (arguments.Has("--shards")) {
    options.events_a_shard = 1;
    options.max_shards = arguments.Number("--shards");
  }
  CULPRIT_ASSIGN(const scale::Plan plan, scale::MakePlan(corpus, options));
  const bool keep = arguments.Has("--run");
  const std::string kept = arguments.Text("--run") + (below.empty() ? "" : "/" + below);
  const std::string folder = keep ? kept : DefaultRunFolder(plan);
  CULPRIT_ASSIGN(const scale::RunFolder run, scale::RunFolder::Create(folder, plan));
  CULPRIT_TRY(RunAll(run, bounds, arguments, output));
  CULPRIT_TRY(read(run));
  std::error_code code;
  if (!keep) std::filesystem::remove_all(folder, code);
  return {};
}

stackmine::MaximalMiner MinerOf(const std::string& corpus, const corpus::GatherOptions& bounds,
                                const Arguments& arguments, Output& output) {
  return
      [=, &arguments, &output](const mine::WeightedSequences& database,
                               const mine::MaximalOptions& options) -> Result<mine::MaximalResult> {
        const uint64_t pieces = PiecesOf(database, arguments);
        if (pieces == 0 || options.max_time_ns != 0 || options.max_memory_bytes != 0) {
          return mine::MineInPieces(database, options, PiecesThatFit(database, bounds));
        }
        CULPRIT_ASSIGN(mine::Subtree found,
                       MineByRun(corpus, database,
                                 {.lambda_ns = std::max<int64_t>(options.lambda, 1),
                                  .max_patterns = options.max_patterns,
                                  .pieces = pieces,
                                  .database = {}},
                                 bounds, arguments, output));
        // What a bound leaves out depends on the whole search.
        if (found.too_many) return mine::MineMaximal(database, options);
        return mine::MaximalResult{.patterns = std::move(found.patterns)};
      };
}

Result<scale::RunEvidence> GatherByRun(const std::string& corpus, scale::PlanOptions options,
                                       const corpus::GatherOptions& bounds,
                                       const Arguments& arguments, Output& output,
                                       const std::string& below) {
  scale::RunEvidence evidence;
  CULPRIT_TRY(CarryOut(
      corpus, std::move(options), bounds, arguments, output,
      [&](const scale::RunFolder& run) -> Status {
        CULPRIT_ASSIGN(evidence, scale::ReadResult(run, bounds.memory_bytes));
        return {};
      },
      below));
  return evidence;
}

}  // namespace culprit::cli
