// SPDX-License-Identifier: Apache-2.0
#include "synth/synthesis.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/parallel.h"
#include "corpus/corpus.h"
#include "trace/trace_writer.h"

namespace culprit::synth {
namespace {

namespace fs = std::filesystem;

// A new file. Nothing is synced here: adding a staged trace does that.
class StagedFile {
 public:
  static Result<StagedFile> Create(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "wbx");
    if (file == nullptr) return ErrnoError("create", path);
    return StagedFile(path, file);
  }
  Status Write(std::string_view bytes) {
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
      return ErrnoError("write", path_);
    }
    return {};
  }
  Status Close() {
    if (std::fclose(file_.release()) != 0) return ErrnoError("write", path_);
    return {};
  }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  StagedFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

// Keeps the first failure of the writer; the simulation runs on into nothing.
class WriterSink : public EventSink {
 public:
  explicit WriterSink(trace::TraceWriter& writer) : writer_(writer) {}
  trace::Dictionary& dictionary() override { return writer_.dictionary(); }
  void Add(const trace::Event& event) override {
    if (!status_.ok()) return;
    Status status = writer_.Add(event);
    if (!status.ok()) status_ = std::move(status);
  }
  void AddInstance(const trace::Instance& instance) override { writer_.AddInstance(instance); }
  const Status& status() const { return status_; }

 private:
  trace::TraceWriter& writer_;
  Status status_;
};

struct MadeTrace {
  std::optional<Error> error;
  std::string path;
  uint64_t bytes = 0;
  SimulationResult result;
};

Status MakeTrace(const World& world, const SimulationOptions& options, uint64_t index,
                 MadeTrace& made) {
  CULPRIT_ASSIGN(StagedFile file, StagedFile::Create(made.path));
  trace::TraceWriter writer([&](std::string_view bytes) { return file.Write(bytes); });
  writer.metadata() = TraceMetadata(options, index);
  WriterSink sink(writer);
  made.result = SimulateTrace(world, options, index, sink);
  CULPRIT_TRY(sink.status());
  CULPRIT_TRY(writer.Finish());
  made.bytes = writer.bytes();
  return file.Close();
}

std::string TraceName(const SimulationOptions& options, uint64_t index) {
  std::string digits = std::to_string(index);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return std::string(options.preset.name) + "-" + digits;
}

Status RefuseExisting(const SynthesisOptions& options) {
  std::error_code ignored;
  if (!fs::exists(options.folder, ignored)) return {};
  if (!fs::is_directory(options.folder, ignored)) {
    return Error{.message = "exists and is no folder", .file = options.folder};
  }
  if (options.force || fs::is_empty(options.folder, ignored)) return {};
  return Error{.message = "exists and is not empty",
               .file = options.folder,
               .hint = "choose another folder, or --force to replace the traces in it"};
}

void RemoveStaged(const std::vector<MadeTrace>& made) {
  std::error_code ignored;
  for (const MadeTrace& trace : made) {
    if (!trace.path.empty()) fs::remove(trace.path, ignored);
  }
}

Status MakeTraces(corpus::Corpus& corpus, const SynthesisOptions& options, Progress& progress,
                  std::vector<MadeTrace>& made) {
  for (MadeTrace& trace : made) {
    CULPRIT_ASSIGN(trace.path, corpus.NewStagingPath());
  }
  const World world(options.simulation.seed, options.simulation.preset.mean_depth);
  progress.Start("simulating", "traces", made.size());
  ParallelFor(made.size(), options.jobs, [&](size_t index) {
    const Status status = MakeTrace(world, options.simulation, index, made[index]);
    if (!status.ok()) made[index].error = status.error();
    progress.Advance();
  });
  progress.Finish();
  for (const MadeTrace& trace : made) {
    if (trace.error) return *trace.error;
  }
  return {};
}

Result<std::vector<corpus::AddOutcome>> AddToCorpus(corpus::Corpus& corpus,
                                                    const SynthesisOptions& options,
                                                    const std::vector<MadeTrace>& made) {
  if (options.force) {
    CULPRIT_ASSIGN(const std::vector<corpus::TraceRow> old, corpus.List());
    std::vector<std::string> names;
    for (const corpus::TraceRow& row : old) names.push_back(row.name);
    if (!names.empty()) CULPRIT_TRY(corpus.Remove(names));
  }
  std::vector<corpus::StagedTrace> staged;
  for (uint64_t i = 0; i < made.size(); ++i) {
    staged.push_back(
        {.path = made[i].path, .name = TraceName(options.simulation, i), .labels = {}});
  }
  return corpus.AddStaged(staged, options.jobs);
}

}  // namespace

uint64_t ScaledTraces(uint64_t traces, double scale) {
  const double wanted = static_cast<double>(traces) * scale + 0.5;
  return wanted < 1 ? 1 : static_cast<uint64_t>(wanted);
}

Result<SynthesisResult> Synthesize(const SynthesisOptions& options, Progress& progress) {
  CULPRIT_TRY(RefuseExisting(options));
  CULPRIT_ASSIGN(corpus::Corpus corpus, corpus::Corpus::Create(options.folder));
  std::vector<MadeTrace> made(options.simulation.preset.traces);
  const Status simulated = MakeTraces(corpus, options, progress, made);
  if (!simulated.ok()) {
    RemoveStaged(made);
    return simulated.error();
  }
  Result<std::vector<corpus::AddOutcome>> added = AddToCorpus(corpus, options, made);
  if (!added.ok()) {
    RemoveStaged(made);
    return added.error();
  }
  SynthesisResult result;
  result.traces = made.size();
  result.simulated_ns = static_cast<int64_t>(made.size()) * options.simulation.preset.dur_ns;
  result.truth.seed = options.simulation.seed;
  result.truth.like = options.simulation.preset.name;
  result.truth.scale = options.scale;
  result.truth.traces = made.size();
  result.truth.syscall_stacks = options.simulation.syscall_stacks;
  for (size_t i = 0; i < made.size(); ++i) {
    result.instances += made[i].result.instances;
    result.events += made[i].result.events;
    result.bytes += made[i].bytes;
    result.truth.Add(added.value()[i].name, made[i].result.truth);
  }
  CULPRIT_TRY(WriteWholeFile((fs::path(options.folder) / "truth.json").string(),
                             TruthJson(result.truth), Overwrite::kAllow));
  return result;
}

}  // namespace culprit::synth
