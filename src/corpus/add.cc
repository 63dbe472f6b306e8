// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/parallel.h"
#include "corpus/corpus.h"
#include "corpus/staging.h"
#include "corpus/state.h"
#include "trace/trace_reader.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = 1 << 20;
// Traces put into one transaction by AddMany: enough to make the transaction's
// own syncs cheap, few enough that a kill loses little work.
constexpr size_t kTracesAtOnce = 64;

int64_t UnixNowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<StagedFile> CopyIn(const std::string& source, const std::string& staged_path) {
  CULPRIT_ASSIGN(const InputFile input, InputFile::Open(source));
  CULPRIT_ASSIGN(AtomicFile output, AtomicFile::Create(staged_path, Overwrite::kRefuse));
  std::string chunk;
  for (uint64_t offset = 0; offset < input.size(); offset += chunk.size()) {
    CULPRIT_TRY(input.ReadAt(offset, kCopyBytes, chunk));
    if (chunk.empty()) return Error{.message = "became shorter while it was read", .file = source};
    CULPRIT_TRY(output.Write(chunk));
  }
  CULPRIT_TRY(output.Commit());
  return StagedFile(staged_path);
}

Status SyncFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", path);
  const int outcome = ::fsync(fd);
  const Error error = outcome == 0 ? Error{} : ErrnoError("sync", path);
  ::close(fd);
  if (outcome != 0) return error;
  return {};
}

bool HasSize(const std::string& path, uint64_t bytes) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && static_cast<uint64_t>(info.st_size) == bytes;
}

// The transaction of AddCandidates, up to but not including its commit.
class Placing {
 public:
  explicit Placing(CorpusState& state) : state_(state) {}

  Result<AddOutcome> Add(const Candidate& candidate) {
    const CatalogEntry& entry = candidate.entry;
    CULPRIT_ASSIGN(const std::optional<TraceRow> there,
                   state_.catalog.FindBySha256(entry.row.sha256));
    AddOutcome outcome{.kind = AddOutcome::Kind::kAdded,
                       .complete = entry.row.complete,
                       .diagnostics = entry.diagnostics};
    if (there) {
      outcome.kind = AddOutcome::Kind::kAlreadyThere;
      outcome.id = there->id;
      outcome.name = there->name;
      CULPRIT_TRY(state_.catalog.SetLabels(there->id, candidate.labels));
      if (!HasSize(PathOf(there->file), there->bytes)) CULPRIT_TRY(Place(candidate, there->file));
      return outcome;
    }
    TraceRow row = entry.row;
    row.file = ContentFile(row.sha256);
    CULPRIT_ASSIGN(row.name, TakeName(candidate, row.file));
    row.added_ns = UnixNowNs();
    for (const auto& [key, value] : candidate.labels) row.labels[key] = value;
    CULPRIT_ASSIGN(outcome.id, state_.catalog.Insert(row, entry.instances));
    CULPRIT_TRY(state_.catalog.Pardon(row.file));
    CULPRIT_TRY(Place(candidate, row.file));
    outcome.name = row.name;
    return outcome;
  }

  Status Sync() { return placed_.empty() ? Status() : SyncFolder(TracesFolder(state_.folder)); }

  // A failed commit may have dropped the write lock, and by now another
  // process may rely on a file placed here: look again under the lock.
  void Undo() {
    state_.catalog.Rollback();
    if (!state_.catalog.Begin().ok()) return;
    for (const auto& [from, file] : placed_) {
      const auto used = state_.catalog.FindByFile(file);
      if (used.ok() && !used.value().has_value()) ::rename(PathOf(file).c_str(), from.c_str());
    }
    state_.catalog.Rollback();
  }

 private:
  std::string PathOf(const std::string& file) const {
    return TracesFolder(state_.folder) + "/" + file;
  }
  // A catalog rebuilt over a decayed file has a row for what that file became;
  // the good copy that comes now takes its place and its name.
  Result<std::string> TakeName(const Candidate& candidate, const std::string& file) {
    CULPRIT_ASSIGN(const std::optional<TraceRow> decayed, state_.catalog.FindByFile(file));
    if (!decayed) return state_.catalog.FreeName(candidate.name);
    CULPRIT_TRY(state_.catalog.Delete(decayed->id));
    return decayed->name;
  }
  Status Place(const Candidate& candidate, const std::string& file) {
    const std::string to = PathOf(file);
    if (candidate.path == to) return {};
    if (::rename(candidate.path.c_str(), to.c_str()) != 0) return ErrnoError("move into", to);
    placed_.emplace_back(candidate.path, file);
    return {};
  }

  CorpusState& state_;
  std::vector<std::pair<std::string, std::string>> placed_;  // from, file in traces/
};

}  // namespace

Result<std::vector<AddOutcome>> AddCandidates(CorpusState& state,
                                              std::vector<Candidate>& candidates) {
  std::vector<AddOutcome> outcomes;
  if (candidates.empty()) return outcomes;
  const std::lock_guard lock(state.mutex);
  CULPRIT_TRY(state.catalog.Begin());
  Placing placing(state);
  const Status done = [&]() -> Status {
    for (const Candidate& candidate : candidates) {
      CULPRIT_ASSIGN(AddOutcome outcome, placing.Add(candidate));
      outcomes.push_back(std::move(outcome));
    }
    CULPRIT_TRY(placing.Sync());
    return state.catalog.Commit();
  }();
  if (done.ok()) return outcomes;
  placing.Undo();
  return done.error();
}

namespace {

// Content that is in the catalog, with its file, needs no copy.
Result<std::optional<AddOutcome>> FindExisting(CorpusState& state, const std::string& path,
                                               const AddOptions& options) {
  CULPRIT_ASSIGN(const std::string sha256, FileSha256(path));
  const std::lock_guard lock(state.mutex);
  const auto find = [&]() -> Result<std::optional<AddOutcome>> {
    CULPRIT_ASSIGN(const std::optional<TraceRow> row, state.catalog.FindBySha256(sha256));
    if (!row || !HasSize(TracesFolder(state.folder) + "/" + row->file, row->bytes))
      return std::optional<AddOutcome>();
    if (!options.labels.empty()) CULPRIT_TRY(state.catalog.SetLabels(row->id, options.labels));
    return std::optional<AddOutcome>(AddOutcome{.kind = AddOutcome::Kind::kAlreadyThere,
                                                .id = row->id,
                                                .name = row->name,
                                                .complete = row->complete,
                                                .diagnostics = {}});
  };
  if (options.labels.empty()) return find();
  CULPRIT_TRY(state.catalog.Begin());
  auto found = find();
  const Status done = found.ok() ? state.catalog.Commit() : Status(found.error());
  if (!done.ok()) {
    state.catalog.Rollback();
    return done.error();
  }
  return found;
}

// What a source file became: already there, or a copy ready to be added.
struct Prepared {
  std::optional<AddOutcome> existing;
  std::optional<StagedFile> copy;
  Candidate candidate;
};

Result<Prepared> Prepare(CorpusState& state, const std::string& path, const AddOptions& options) {
  // Refused before anything is copied, and in terms of the user's own path.
  CULPRIT_TRY(trace::TraceReader::Open(path));
  Prepared prepared;
  CULPRIT_ASSIGN(prepared.existing, FindExisting(state, path, options));
  if (prepared.existing) return prepared;
  CULPRIT_ASSIGN(const std::string staged, MakeStagingPath(StagingFolder(state.folder)));
  CULPRIT_ASSIGN(StagedFile copy, CopyIn(path, staged));
  prepared.copy.emplace(std::move(copy));
  auto entry = MakeCatalogEntry(staged, BlockCheck::kDecode);
  if (!entry.ok()) {
    Error error = entry.error();
    error.file = path;
    return error;
  }
  prepared.candidate.path = staged;
  prepared.candidate.name =
      CleanName(options.name.empty() ? fs::path(path).stem().string() : options.name);
  prepared.candidate.labels = options.labels;
  prepared.candidate.entry = std::move(entry).value();
  return prepared;
}

}  // namespace

Result<AddOutcome> Corpus::Add(const std::string& trace_path, const AddOptions& options) {
  CULPRIT_ASSIGN(Prepared prepared, Prepare(*state_, trace_path, options));
  if (prepared.existing) return *prepared.existing;
  std::vector<Candidate> one;
  one.push_back(std::move(prepared.candidate));
  CULPRIT_ASSIGN(std::vector<AddOutcome> outcomes, AddCandidates(*state_, one));
  return std::move(outcomes.front());
}

std::vector<Result<AddOutcome>> Corpus::AddMany(const std::vector<std::string>& trace_paths,
                                                const AddOptions& options, size_t jobs,
                                                Progress& progress) {
  CULPRIT_CHECK(options.name.empty());
  std::vector<Result<AddOutcome>> results(trace_paths.size(), AddOutcome());
  progress.Start("adding", "traces", trace_paths.size());
  for (size_t begin = 0; begin < trace_paths.size(); begin += kTracesAtOnce) {
    const size_t count = std::min(kTracesAtOnce, trace_paths.size() - begin);
    std::vector<std::optional<Prepared>> prepared(count);
    ParallelFor(count, jobs, [&](size_t i) {
      auto one = Prepare(*state_, trace_paths[begin + i], options);
      if (one.ok()) {
        prepared[i].emplace(std::move(one).value());
      } else {
        results[begin + i] = one.error();
      }
      progress.Advance();
    });
    std::vector<size_t> slots;
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < count; ++i) {
      if (!prepared[i]) continue;
      if (prepared[i]->existing) {
        results[begin + i] = *prepared[i]->existing;
      } else {
        slots.push_back(begin + i);
        candidates.push_back(std::move(prepared[i]->candidate));
      }
    }
    const auto outcomes = AddCandidates(*state_, candidates);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (outcomes.ok()) {
        results[slots[i]] = outcomes.value()[i];
      } else {
        results[slots[i]] = outcomes.error();
      }
    }
  }
  progress.Finish();
  return results;
}

Result<std::string> Corpus::NewStagingPath() {
  return MakeStagingPath(StagingFolder(state_->folder));
}

Result<AddOutcome> Corpus::AddStaged(const std::string& staged_path, const std::string& name,
                                     const std::map<std::string, std::string>& labels) {
  CULPRIT_ASSIGN(std::vector<AddOutcome> outcomes,
                 AddStaged({StagedTrace{staged_path, name, labels}}, 1));
  return std::move(outcomes.front());
}

Result<std::vector<AddOutcome>> Corpus::AddStaged(const std::vector<StagedTrace>& staged,
                                                  size_t jobs) {
  std::vector<std::optional<Error>> errors(staged.size());
  std::vector<Candidate> candidates(staged.size());
  ParallelFor(staged.size(), jobs, [&](size_t i) {
    const Status synced = SyncFile(staged[i].path);
    if (!synced.ok()) {
      errors[i] = synced.error();
      return;
    }
    auto entry = MakeCatalogEntry(staged[i].path, BlockCheck::kTrustIndex);
    if (!entry.ok()) {
      errors[i] = entry.error();
      return;
    }
    candidates[i] = {staged[i].path, CleanName(staged[i].name), staged[i].labels,
                     std::move(entry).value()};
  });
  for (const auto& error : errors)
    if (error) return *error;
  CULPRIT_ASSIGN(std::vector<AddOutcome> outcomes, AddCandidates(*state_, candidates));
  // What was already there has no more use for its staged copy; where it was
  // moved in, nothing is at the path any more.
  for (const StagedTrace& one : staged) ::unlink(one.path.c_str());
  return outcomes;
}

}  // namespace culprit::corpus
