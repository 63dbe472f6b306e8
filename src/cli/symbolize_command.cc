// SPDX-License-Identifier: Apache-2.0
//
// culprit symbolize: names for frames of traces that were recorded or imported
// where the binaries were not at hand. First every trace tells which modules
// have frames without a name; then traces for which everything that can be had
// is here are written anew, while servers are asked for the rest, if that is
// wanted; last come the traces that waited for them. Each trace is replaced
// whole or not at all.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/parallel.h"
#include "cli/commands.h"
#include "cli/symbolize_report.h"
#include "corpus/corpus.h"
#include "corpus/replace.h"
#include "corpus/staging.h"
#include "trace/trace_reader.h"

namespace culprit::cli {
namespace {

using corpus::Corpus;
using symbol::Download;
using ModuleName = std::pair<std::string, std::string>;  // path, build-id

constexpr size_t kBatch = 64;  // traces whose new files wait to be put in place

struct Job {
  std::string name;
  std::string path;
  Corpus* corpus = nullptr;  // none: a file by itself
  corpus::TraceRow row = {};
  std::vector<symbol::UnnamedModule> unnamed = {};
};

struct Inputs {
  std::vector<std::unique_ptr<Corpus>> corpora;
  std::vector<Job> jobs;
};

Result<Inputs> InputsOf(const std::vector<std::string>& operands) {
  Inputs inputs;
  for (const std::string& operand : operands) {
    std::error_code code;
    if (!std::filesystem::is_directory(operand, code)) {
      inputs.jobs.push_back({.name = operand, .path = operand});
      continue;
    }
    CULPRIT_ASSIGN(Corpus opened, Corpus::Open(operand));
    inputs.corpora.push_back(std::make_unique<Corpus>(std::move(opened)));
    Corpus* corpus = inputs.corpora.back().get();
    CULPRIT_ASSIGN(std::vector<corpus::TraceRow> rows, corpus->List());
    for (corpus::TraceRow& row : rows) {
      Job job{.name = row.name, .path = corpus->TracePath(row), .corpus = corpus};
      job.row = std::move(row);
      inputs.jobs.push_back(std::move(job));
    }
  }
  return inputs;
}

// /proc/kallsyms itself is a good answer where the recorded machine is this one,
// and has no size to go by.
Result<symbol::KernelSymbols> ReadKallsyms(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto symbols = symbol::KernelSymbols::Parse(text);
  if (!symbols.ok()) {
    Error error = symbols.error();
    error.file = path;
    return error;
  }
  if (symbols.value().hidden()) {
    return Error{.message = "its addresses are all zero",
                 .file = path,
                 .hint = "read /proc/kallsyms as root"};
  }
  return symbols;
}

void Survey(std::vector<Job>& jobs, size_t threads, SymbolizeFacts& facts, Progress& progress) {
  facts.traces.resize(jobs.size());
  progress.Start("reading", "traces", jobs.size());
  ParallelFor(jobs.size(), threads, [&](size_t i) {
    Job& job = jobs[i];
    facts.traces[i].name = job.name;
    const auto reader = trace::TraceReader::Open(job.path);
    if (reader.ok()) {
      job.unnamed = symbol::UnnamedModules(reader.value().dictionary());
      symbol::NamingCounts& counts = facts.traces[i].counts;
      for (const trace::Frame& frame : reader.value().dictionary().frames()) {
        if (!frame.module.valid()) continue;
        ++counts.frames;
        if (frame.function.valid()) ++counts.named_before;
      }
      counts.named = counts.named_before;
    } else {
      facts.traces[i].error = reader.error();
    }
    progress.Advance();
  });
  progress.Finish();
}

ModuleName NameOf(const symbol::UnnamedModule& module) {
  return {module.key.path, module.key.build_id};
}

void GatherModules(const std::vector<Job>& jobs, const symbol::SymbolizerOptions& options,
                   SymbolizeFacts& facts) {
  std::map<ModuleName, ModuleFacts> modules;
  for (const Job& job : jobs) {
    for (const symbol::UnnamedModule& module : job.unnamed) {
      ModuleFacts& row = modules[NameOf(module)];
      const uint64_t frames = row.module.frames + module.frames;
      row.module = module;
      row.module.frames = frames;
      ++row.traces;
    }
  }
  for (auto& [name, row] : modules) {
    if (!row.module.key.build_id.empty()) {
      row.files = symbol::FindModuleFiles(row.module.key, options);
    }
    facts.modules.push_back(std::move(row));
  }
  std::stable_sort(
      facts.modules.begin(), facts.modules.end(),
      [](const ModuleFacts& a, const ModuleFacts& b) { return a.module.frames > b.module.frames; });
}

std::vector<Download> Wanted(const SymbolizeFacts& facts) {
  std::vector<Download> wanted;
  for (const ModuleFacts& row : facts.modules) {
    const std::string& build_id = row.module.key.build_id;
    if (build_id.empty() || row.files.lines) continue;
    if (row.files.path.empty()) wanted.push_back({.build_id = build_id, .debug = false});
    wanted.push_back({.build_id = build_id, .debug = true});
  }
  return wanted;
}

void TakeDownloads(const std::vector<Download>& downloads, const symbol::SymbolizerOptions& options,
                   SymbolizeFacts& facts) {
  for (ModuleFacts& row : facts.modules) {
    for (const Download& download : downloads) {
      if (download.build_id != row.module.key.build_id) continue;
      (download.debug ? row.debug : row.binary) = download;
    }
    if (row.debug) row.files = symbol::FindModuleFiles(row.module.key, options);
  }
}

// Could anything of the trace get a name now?
bool HasSource(const Job& job, const std::map<ModuleName, const ModuleFacts*>& modules,
               const symbol::NameSources& sources) {
  return std::any_of(job.unnamed.begin(), job.unnamed.end(), [&](const auto& module) {
    if (module.kernel && sources.kernel != nullptr) return true;
    if (module.key.build_id.empty()) return !sources.perf_map_folder.empty();
    return !modules.at(NameOf(module))->files.path.empty();
  });
}

struct Written {
  std::optional<corpus::StagedFile> staged;
  Result<symbol::NamingCounts> counts = symbol::NamingCounts{};
};

Written WriteOne(const Job& job, const symbol::NameSources& sources) {
  Written written;
  auto reader = trace::TraceReader::Open(job.path);
  if (!reader.ok()) {
    written.counts = reader.error();
    return written;
  }
  std::string path = job.path;
  if (job.corpus != nullptr) {
    auto staged = job.corpus->NewStagingPath();
    if (!staged.ok()) {
      written.counts = staged.error();
      return written;
    }
    path = staged.value();
    written.staged.emplace(path);
  }
  written.counts = symbol::WriteNamed(reader.value(), sources, path);
  return written;
}

void Finish(const Job& job, const Written& written, TraceFacts& facts) {
  if (!written.counts.ok()) {
    facts.error = written.counts.error();
    return;
  }
  facts.counts = written.counts.value();
  if (!facts.counts.any_new()) return;
  if (written.staged) {
    const Status done = corpus::ReplaceTrace(job.corpus->folder(), job.row, written.staged->path());
    if (!done.ok()) {
      facts.error = done.error();
      facts.counts.named = facts.counts.named_before;
      facts.counts.inlined = facts.counts.jit_named = 0;
      return;
    }
  }
  facts.replaced = true;
}

// One pass over some of the traces; they are put in place in their order.
void NameTraces(const std::vector<Job>& jobs, const std::vector<size_t>& chosen,
                const symbol::NameSources& sources, size_t threads, SymbolizeFacts& facts,
                Progress& progress) {
  std::map<ModuleName, const ModuleFacts*> modules;
  for (const ModuleFacts& row : facts.modules) modules[NameOf(row.module)] = &row;
  progress.Start("naming", "traces", chosen.size());
  for (size_t begin = 0; begin < chosen.size(); begin += kBatch) {
    std::vector<std::optional<Written>> written(std::min(kBatch, chosen.size() - begin));
    ParallelFor(written.size(), threads, [&](size_t i) {
      const Job& job = jobs[chosen[begin + i]];
      if (HasSource(job, modules, sources)) written[i].emplace(WriteOne(job, sources));
      progress.Advance();
    });
    for (size_t i = 0; i < written.size(); ++i) {
      const size_t index = chosen[begin + i];
      if (written[i]) Finish(jobs[index], *written[i], facts.traces[index]);
    }
  }
  progress.Finish();
}

symbol::SymbolizerOptions OptionsOf(const Arguments& arguments) {
  symbol::SymbolizerOptions options;
  options.debug_folders = arguments.All("--debug-dir");
  options.debug_folders.emplace_back("/usr/lib/debug");
  options.debug_folders.emplace_back("/usr/lib");  // Fedora's links by build-id
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') options.build_id_cache = std::string(home) + "/.debug";
  options.debuginfod_cache = symbol::DebuginfodCacheFolder();
  return options;
}

// The traces that need nothing of what servers are asked for, and the others.
std::pair<std::vector<size_t>, std::vector<size_t>> Split(const std::vector<Job>& jobs,
                                                          const SymbolizeFacts& facts,
                                                          const std::vector<Download>& wanted) {
  std::set<std::string> awaited;
  for (const Download& download : wanted) awaited.insert(download.build_id);
  std::pair<std::vector<size_t>, std::vector<size_t>> parts;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (facts.traces[i].error || jobs[i].unnamed.empty()) continue;
    const bool waits =
        std::any_of(jobs[i].unnamed.begin(), jobs[i].unnamed.end(),
                    [&](const auto& module) { return awaited.count(module.key.build_id) != 0; });
    (waits ? parts.second : parts.first).push_back(i);
  }
  return parts;
}

int Report(const SymbolizeFacts& facts, const Arguments& arguments, Output& output) {
  output.Print(arguments.Has("--json") ? SymbolizeJson(facts)
                                       : SymbolizeText(facts, output.width(), output.color()));
  bool failed = false;
  for (const TraceFacts& trace : facts.traces) {
    if (!trace.error) continue;
    failed = true;
    output.Warn(trace.name + ": " + trace.error->message);
  }
  if (!arguments.Has("--json")) {
    for (const std::string& hint : MissingHints(facts)) output.Note(hint);
    output.Note("next: culprit info " + arguments.operands().front());
  }
  return failed ? 1 : 0;
}

Result<int> RunSymbolize(const Arguments& arguments, Output& output) {
  const size_t threads = arguments.Number("--jobs");
  symbol::SymbolizerOptions options = OptionsOf(arguments);
  std::optional<symbol::KernelSymbols> kernel;
  if (arguments.Has("--kallsyms")) {
    CULPRIT_ASSIGN(kernel, ReadKallsyms(arguments.Text("--kallsyms")));
  }
  CULPRIT_ASSIGN(Inputs inputs, InputsOf(arguments.operands()));
  SymbolizeFacts facts;
  facts.kernel_symbols = kernel.has_value();
  facts.asked_servers = arguments.Has("--debuginfod") || arguments.Has("--debuginfod-urls");
  Survey(inputs.jobs, threads, facts, output.progress());
  GatherModules(inputs.jobs, options, facts);

  std::vector<Download> wanted;
  if (facts.asked_servers) wanted = Wanted(facts);
  std::optional<symbol::DebugServer> server;
  if (!wanted.empty()) {
    CULPRIT_ASSIGN(symbol::DebugServer started,
                   symbol::DebugServer::Start({.urls = arguments.Text("--debuginfod-urls"),
                                               .max_time_ns = arguments.DurationNs("--max-time"),
                                               .max_bytes = arguments.Number("--max-bytes")},
                                              wanted));
    server.emplace(std::move(started));
  }
  const auto [ready, waiting] = Split(inputs.jobs, facts, wanted);
  const auto name = [&](const std::vector<size_t>& chosen) {
    // What was missing to one Symbolizer stays missing to it.
    symbol::Symbolizer symbolizer(options);
    const symbol::NameSources sources{.symbolizer = symbolizer,
                                      .kernel = kernel ? &*kernel : nullptr,
                                      .perf_map_folder = arguments.Text("--perf-map")};
    NameTraces(inputs.jobs, chosen, sources, threads, facts, output.progress());
  };
  name(ready);
  if (server) {
    TakeDownloads(server->Wait(output.progress()), options, facts);
    name(waiting);
  }
  return Report(facts, arguments, output);
}

}  // namespace

Command SymbolizeCommand() {
  Command command;
  command.name = "symbolize";
  command.summary = "name the frames of traces, from binaries and debug files found by build-id";
  command.operands = "CORPUS|TRACE...";
  command.min_operands = 1;
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit symbolize fleet --debug-dir build/out", "with the unstripped files of a build"},
      {"culprit symbolize fleet --debuginfod", "ask the servers of DEBUGINFOD_URLS too"},
      {"culprit symbolize slow.ctrace --kallsyms kallsyms.txt", "one trace, and its kernel"}};
  command.flags = {
      {.name = "--debug-dir",
       .kind = ValueKind::kPath,
       .value = "DIR",
       .help = "a folder of binaries, debug files or .build-id links; may be repeated"},
      {.name = "--debuginfod", .help = "fetch what is missing from the servers of DEBUGINFOD_URLS"},
      {.name = "--debuginfod-urls",
       .kind = ValueKind::kText,
       .value = "URLS",
       .help = "fetch what is missing from these servers, separated by spaces"},
      {.name = "--max-time",
       .kind = ValueKind::kDuration,
       .value = "D",
       .help = "give up downloads after this time",
       .default_text = "60s"},
      {.name = "--max-bytes",
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "download at most so many bytes",
       .default_text = "1000000000"},
      {.name = "--kallsyms",
       .kind = ValueKind::kPath,
       .value = "FILE",
       .help = "a copy of /proc/kallsyms of the recorded machine"},
      {.name = "--perf-map",
       .kind = ValueKind::kPath,
       .value = "DIR",
       .help = "a folder with perf-PID.map files of just-in-time compilers"},
      {.name = "--jobs",
       .letter = 'j',
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "how many traces to work on at a time; 0: one per processor",
       .default_text = "0"},
      {.name = "--json", .help = "print JSON"}};
  command.details =
      "A frame without a name is a module and an offset. Where a file with the module's "
      "build-id is found, the frame gets function, file and line, and functions inlined there "
      "become frames of their own. Looked at are the recorded path, the folders given, "
      "/usr/lib/debug, perf's cache ~/.debug and the cache of debuginfod clients. A file of "
      "another build is never used. Frames that have a name stay as they are; so do events, "
      "instances, names and labels.\n\n"
      "A trace of a corpus is replaced in one step, a trace file by renaming; a command that is "
      "killed leaves the old or the new one. Damaged traces are left as they are. The exit code "
      "is 1 if a trace could not be worked on.\n\n"
      "Servers are asked only with --debuginfod or --debuginfod-urls, in the background; traces "
      "that need nothing from them do not wait. What did not come within the bounds is reported, "
      "and comes from the cache or the servers when the command is run again.";
  command.run = &RunSymbolize;
  return command;
}

}  // namespace culprit::cli
