// SPDX-License-Identifier: Apache-2.0
//
// culprit import: whatever performance engineers already have, into a corpus.
// Inputs are read in parallel, each into a staged file, and added in the order
// they were given, a batch at a time; so names and ids do not depend on the
// number of threads, and a killed command leaves whole traces or none.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/import_report.h"
#include "corpus/corpus.h"
#include "corpus/staging.h"
#include "import/import_run.h"
#include "import/trace_folder.h"
#include "symbol/debug_files.h"

namespace culprit::cli {
namespace {

using corpus::Corpus;
using import_::ImportRequest;
using import_::Source;

constexpr size_t kMaxInputs = 1'000'000;
constexpr size_t kBatch = 64;  // inputs whose staged files wait to be added

struct Input {
  std::string path;
  std::string operand;  // the folder it was found in; empty: given itself
};

// What became of one Source.
struct Slot {
  std::string source;
  std::string name;
  std::optional<corpus::StagedFile> staged = {};
  std::optional<import_::ImportOutcome> outcome = {};
  std::optional<Error> error = {};
  bool not_recognised = false;
};

// The corpus is made when the first input is recognised, so that a command that
// finds nothing leaves nothing.
class LazyCorpus {
 public:
  explicit LazyCorpus(std::string folder) : folder_(std::move(folder)) {}

  Result<std::string> NewStagingPath() {
    const std::lock_guard lock(mutex_);
    if (!corpus_) {
      CULPRIT_ASSIGN(Corpus made, Corpus::Create(folder_));
      corpus_.emplace(std::move(made));
    }
    return corpus_->NewStagingPath();
  }
  Corpus& corpus() { return *corpus_; }

 private:
  std::string folder_;
  std::mutex mutex_;
  std::optional<Corpus> corpus_;
};

// "runs/a/perf.data.zst" of the folder "runs" is "a-perf.data"; a file given by
// itself is its name without the last suffix.
std::string TraceName(const Input& input, const std::string& source) {
  std::string_view name = source;
  if (!input.operand.empty() && name.starts_with(input.operand)) {
    name.remove_prefix(input.operand.size());
  } else {
    const size_t member = name.find(':', input.path.size());
    const size_t slash = name.substr(0, member).rfind('/');
    if (slash != std::string_view::npos && slash + 1 < name.size()) name.remove_prefix(slash + 1);
  }
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  for (const std::string_view suffix : {".zst", ".gz", ".xz", ".bz2", ".lz4", ".txt", ".data",
                                        ".dat", ".strace", ".folded", ".html", ".pftrace"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  std::string out(name.empty() ? std::string_view("trace") : name);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '/' || c == ':'; }, '-');
  return out;
}

Slot ImportSource(const Input& input, const Source& source, const ImportRequest& request,
                  LazyCorpus& corpus) {
  Slot slot{.source = source.name(), .name = TraceName(input, source.name())};
  const auto importer = import_::ChooseImporter(source, request.format);
  if (!importer.ok()) {
    slot.error = importer.error();
    slot.not_recognised = request.format.empty();
    return slot;
  }
  auto path = corpus.NewStagingPath();
  if (!path.ok()) {
    slot.error = path.error();
    return slot;
  }
  slot.staged.emplace(path.value());
  auto outcome = import_::ImportOne(source, request, path.value());
  if (outcome.ok()) {
    slot.outcome = std::move(outcome).value();
  } else {
    slot.error = outcome.error();
  }
  return slot;
}

std::vector<Slot> ImportInput(const Input& input, const ImportRequest& request,
                              LazyCorpus& corpus) {
  std::vector<Slot> slots;
  for (const Result<Source>& source : import_::OpenSources(input.path)) {
    if (source.ok()) {
      slots.push_back(ImportSource(input, source.value(), request, corpus));
    } else {
      slots.push_back({.source = input.path, .name = {}, .error = source.error()});
    }
  }
  // A README beside a trace is no failure; an input with nothing in it is.
  const bool any = std::any_of(slots.begin(), slots.end(),
                               [](const Slot& slot) { return slot.outcome.has_value(); });
  if (input.operand.empty() && !any) {
    for (Slot& slot : slots) slot.not_recognised = false;
  }
  return slots;
}

struct Collected {
  std::vector<ImportedTrace> traces;
  std::vector<Error> failures;
  uint64_t not_recognised = 0;
};

void AddToCorpus(std::vector<Slot>& slots, const std::map<std::string, std::string>& labels,
                 LazyCorpus& corpus, Collected& collected) {
  for (Slot& slot : slots) {
    if (slot.not_recognised) {
      ++collected.not_recognised;
    } else if (slot.error) {
      collected.failures.push_back(*slot.error);
    } else {
      auto added = corpus.corpus().AddStaged(slot.staged->path(), slot.name, labels);
      if (!added.ok()) {
        collected.failures.push_back(added.error());
        continue;
      }
      collected.traces.push_back({slot.source, added.value().name,
                                  added.value().kind == corpus::AddOutcome::Kind::kAlreadyThere,
                                  std::move(*slot.outcome)});
    }
  }
  slots.clear();
}

Result<std::map<std::string, std::string>> LabelsOf(const Arguments& arguments) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : arguments.All("--label")) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{.message = "--label takes KEY=VALUE, not '" + text + "'"};
    }
    labels[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return labels;
}

Result<ImportRequest> RequestOf(const Arguments& arguments) {
  ImportRequest request;
  request.format = arguments.Text("--format");
  request.options.symbols = !arguments.Has("--no-symbols");
  request.options.kallsyms = arguments.Text("--kallsyms");
  request.options.sysroot = arguments.Text("--sysroot");
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') {
    request.options.build_id_cache = std::string(home) + "/.debug";
  }
  request.options.debuginfod_cache = symbol::DebuginfodCacheFolder();
  request.options.default_period_ns = arguments.DurationNs("--period");
  if (request.options.default_period_ns <= 0) {
    return Error{.message = "--period must be above 0"};
  }
  for (const std::string& text : arguments.All("--perf-map")) {
    request.options.perf_maps.push_back(import_::ParsePerfMapFile(text));
    CULPRIT_TRY(InputFile::Open(request.options.perf_maps.back().path));
  }
  for (const std::string& text : arguments.All("--scenario")) {
    CULPRIT_ASSIGN(import_::InstanceRule rule, import_::ParseInstanceRule(text));
    request.rules.push_back(std::move(rule));
  }
  if (arguments.Has("--instances")) {
    CULPRIT_ASSIGN(request.instances, import_::ReadInstanceTable(arguments.Text("--instances")));
  }
  return request;
}

std::vector<Input> InputsOf(const Arguments& arguments, std::vector<Error>& failures) {
  std::vector<Input> inputs;
  for (const std::string& operand : arguments.operands()) {
    auto below = import_::InputsBelow(operand, kMaxInputs);
    if (!below.ok()) {
      failures.push_back(below.error());
      continue;
    }
    const bool single = below.value().size() == 1 && below.value().front() == operand;
    for (std::string& path : below.value()) {
      inputs.push_back({std::move(path), single ? std::string() : operand});
    }
  }
  return inputs;
}

void Warn(const std::vector<Error>& failures, uint64_t not_recognised, Output& output) {
  for (const Error& error : failures) {
    output.Warn(error.ToString() + (error.hint.empty() ? "" : "; " + error.hint));
  }
  if (not_recognised != 0) {
    output.Note(FormatCount(not_recognised) + (not_recognised == 1 ? " file is" : " files are") +
                " of no known format and were left out");
  }
}

Result<int> Run(const Arguments& arguments, Output& output) {
  CULPRIT_ASSIGN(const ImportRequest request, RequestOf(arguments));
  CULPRIT_ASSIGN(const auto labels, LabelsOf(arguments));
  const std::string folder = arguments.Text("--output");
  Collected collected;
  const std::vector<Input> inputs = InputsOf(arguments, collected.failures);
  LazyCorpus corpus(folder);
  output.progress().Start("importing", "inputs", inputs.size());
  for (size_t begin = 0; begin < inputs.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, inputs.size() - begin);
    std::vector<std::vector<Slot>> slots(count);
    ParallelFor(count, arguments.Number("--jobs"), [&](size_t i) {
      slots[i] = ImportInput(inputs[begin + i], request, corpus);
      output.progress().Advance();
    });
    for (std::vector<Slot>& each : slots) AddToCorpus(each, labels, corpus, collected);
  }
  output.progress().Finish();
  if (arguments.Has("--json")) {
    std::vector<std::string> failures;
    for (const Error& error : collected.failures) failures.push_back(error.ToString());
    output.Print(ImportedJson(collected.traces, failures, collected.not_recognised));
  } else {
    output.Print(ImportedText(collected.traces, output.width(), output.color()));
  }
  Warn(collected.failures, collected.not_recognised, output);
  if (collected.traces.empty()) {
    if (collected.failures.empty()) output.Warn("nothing was imported");
    return 1;
  }
  if (const std::string unnamed = UnnamedText(collected.traces, folder); !unnamed.empty()) {
    output.Note(unnamed);
  }
  output.Note("next: culprit info " + folder);
  return 0;
}

}  // namespace

Command ImportCommand() {
  Command command;
  command.name = "import";
  command.summary = "read traces of other tools into a corpus, which is made if needed";
  command.operands = "FILE|FOLDER...";
  command.min_operands = 1;
  command.max_operands = SIZE_MAX;
  command.examples = {
      {"culprit import perf.data -o c", "one recording"},
      {"culprit import runs/ -o c --label release=2.1", "all that can be read below a folder"},
      {"culprit import app.strace -o c --scenario 'Start: process app'",
       "each process called app is an instance of the scenario Start"},
      {"culprit import t.zip -o c --scenario 'Startup: process-start app .. call *!PeekMessage*'",
       "from a process's start to its first call of a function"}};
  command.flags = {
      {.name = "--output",
       .letter = 'o',
       .kind = ValueKind::kPath,
       .value = "CORPUS",
       .help = "the corpus to add to",
       .required = true},
      {.name = "--format",
       .kind = ValueKind::kText,
       .value = "NAME",
       .help = "read every input as this format instead of recognising it"},
      {.name = "--label",
       .kind = ValueKind::kText,
       .value = "KEY=VALUE",
       .help = "a label for every trace; may be repeated"},
      {.name = "--jobs",
       .letter = 'j',
       .kind = ValueKind::kNumber,
       .value = "N",
       .help = "how many inputs to read at a time; 0: one per processor",
       .default_text = "0"},
      {.name = "--kallsyms",
       .kind = ValueKind::kPath,
       .value = "FILE",
       .help = "a copy of /proc/kallsyms of the recorded machine"},
      {.name = "--sysroot",
       .kind = ValueKind::kPath,
       .value = "DIR",
       .help = "where the files of the recorded machine are"},
      {.name = "--perf-map",
       .kind = ValueKind::kText,
       .value = "FILE[:PID]",
       .help = "names of code made at run time, as perf-PID.map has them; may be repeated"},
      {.name = "--no-symbols", .help = "do not look up names in binaries of this machine"},
      {.name = "--period",
       .kind = ValueKind::kDuration,
       .value = "D",
       .help = "time of a sample in formats that do not say",
       .default_text = "1ms"},
      {.name = "--scenario",
       .kind = ValueKind::kText,
       .value = "RULE",
       .help = "find instances by a rule; may be repeated"},
      {.name = "--instances",
       .kind = ValueKind::kPath,
       .value = "CSV",
       .help = "instances as lines trace,scenario,tid,t0_ns,t1_ns"},
      {.name = "--json", .help = "print JSON"}};
  command.details =
      "Formats are recognised by content, packed or not: .gz, .zst, .xz, .bz2 and .lz4 files, "
      ".zip, .7z and .tar archives, folders of any of these. Known are perf.data (file and pipe "
      "mode), trace.dat of trace-cmd, Perfetto, CTF of LTTng and others, raw ring-buffer pages, "
      "pprof, and as text perf script, ftrace, trace-cmd report, atrace, systrace, strace and "
      "folded stacks.\n\n"
      "An input that cannot be read does not stop the others; each trace is added whole or not "
      "at all. The exit code is 1 only if nothing could be imported. What was skipped inside a "
      "trace is counted and shown.\n\n"
      "A rule is 'NAME: process GLOB' (one instance a process, its first thread from start to "
      "end) or 'NAME: process-start GLOB .. call GLOB' (from the start of the process to the "
      "first event of its first thread with such a frame in its stack). In an --instances file "
      "the trace is the input's file name, or * for all.\n\n"
      "Code of just-in-time compilers is named by the perf-PID.map that they write. Those in /tmp "
      "are used if the recording is of this machine; --perf-map gives one by hand, for the process "
      "PID, or that of a name perf-PID.map, or every process.\n\n"
      "Folded stacks have no unit: values are samples of --period each, or microseconds in "
      "off-CPU files (nanoseconds where microseconds would be absurd); a line '# unit: ns' in "
      "the file settles it. strace is best written with -f -ttt -T.";
  command.run = &Run;
  return command;
}

}  // namespace culprit::cli
