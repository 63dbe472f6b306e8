// SPDX-License-Identifier: Apache-2.0
#include "corpus/corpus.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "corpus/state.h"
#include "corpus/summary_store.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kContentDigits = 32;
Error LostCatalog(const std::string& folder, std::string message) {
  return {
      .message = std::move(message),
      .file = folder,
      .hint = "'culprit corpus check " + folder + " --repair' rebuilds it from the trace files"};
}

Status RequireFolder(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    Error error = ErrnoError("open the corpus", folder);
    if (errno == ENOENT) error.hint = "'culprit corpus add " + folder + " TRACE...' makes one";
    return error;
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error{.message = "is not a corpus: a corpus is a folder",
                 .file = folder,
                 .hint = "'culprit corpus add CORPUS " + folder + "' puts a trace into one"};
  }
  return {};
}

// A folder in which creating a corpus was interrupted has only these.
bool IsPartOfCorpus(const std::string& name) {
  return name == "traces" || name.starts_with(kCatalogFile);
}

Status RequireEmpty(const std::string& folder) {
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (IsPartOfCorpus(it->path().filename().string())) continue;
    return Error{.message = "is neither empty nor a corpus; nothing was changed",
                 .file = folder,
                 .hint = "give a new folder, or an existing corpus"};
  }
  if (code) return Error{.message = "cannot list: " + code.message(), .file = folder};
  return {};
}

// The state of the catalog, with content but no catalog turned into an Error.
Result<CatalogState> RequireNotLost(const std::string& folder) {
  CULPRIT_ASSIGN(const CatalogState state, ProbeCatalog(CatalogPath(folder), false));
  if (state != CatalogState::kMissing && state != CatalogState::kEmpty) return state;
  CULPRIT_ASSIGN(const std::vector<std::string> content, ContentFiles(folder));
  if (content.empty()) return state;
  // Another process may have made the catalog and added a trace in between.
  CULPRIT_ASSIGN(const CatalogState now, ProbeCatalog(CatalogPath(folder), false));
  if (now == CatalogState::kGood) return now;
  return LostCatalog(folder, state == CatalogState::kMissing ? "the corpus has lost its catalog"
                                                             : "the catalog is empty");
}

}  // namespace

std::string CatalogPath(const std::string& folder) { return folder + "/" + kCatalogFile; }
std::string TracesFolder(const std::string& folder) { return folder + "/traces"; }
std::string StagingFolder(const std::string& folder) { return folder + "/traces/.staging"; }

std::string ContentFile(const std::string& sha256) {
  return sha256.substr(0, kContentDigits) + kTraceSuffix;
}

bool IsContentFile(std::string_view file_name) {
  return file_name.size() == kContentDigits + std::string_view(kTraceSuffix).size() &&
         file_name.ends_with(kTraceSuffix) &&
         file_name.find_first_not_of("0123456789abcdef") == kContentDigits;
}

Result<std::vector<std::string>> ContentFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (fs::directory_iterator it(TracesFolder(folder), code), end; !code && it != end;
       it.increment(code)) {
    std::string name = it->path().filename().string();
    if (IsContentFile(name)) files.push_back(std::move(name));
  }
  if (code && code != std::errc::no_such_file_or_directory)
    return Error{.message = "cannot list: " + code.message(), .file = TracesFolder(folder)};
  std::sort(files.begin(), files.end());
  return files;
}

std::string CleanName(std::string_view wanted) {
  std::string name(wanted);
  for (char& c : name)
    if (c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
  return name.empty() ? "trace" : name;
}

Corpus::Corpus(std::unique_ptr<CorpusState> state) : state_(std::move(state)) {}
Corpus::Corpus(Corpus&&) noexcept = default;
Corpus& Corpus::operator=(Corpus&&) noexcept = default;
Corpus::~Corpus() = default;

Result<Corpus> Corpus::Open(const std::string& folder) {
  CULPRIT_TRY(RequireFolder(folder));
  CULPRIT_ASSIGN(const CatalogState state, RequireNotLost(folder));
  if (state == CatalogState::kMissing) {
    return Error{.message = "is not a corpus: it has no catalog.sqlite",
                 .file = folder,
                 .hint = "'culprit corpus add CORPUS TRACE...' makes a corpus"};
  }
  // kEmpty without content: creating it was interrupted, so it is finished now.
  CULPRIT_ASSIGN(Catalog catalog,
                 Catalog::Open(CatalogPath(folder), state == CatalogState::kEmpty));
  return Corpus(std::make_unique<CorpusState>(folder, std::move(catalog)));
}

Result<Corpus> Corpus::Create(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code && !fs::exists(folder)) {
    return Error{.message = "cannot create the folder: " + code.message(), .file = folder};
  }
  CULPRIT_TRY(RequireFolder(folder));
  CULPRIT_ASSIGN(const CatalogState state, RequireNotLost(folder));
  if (state == CatalogState::kMissing) CULPRIT_TRY(RequireEmpty(folder));
  const bool create = state == CatalogState::kMissing || state == CatalogState::kEmpty;
  CULPRIT_ASSIGN(Catalog catalog, Catalog::Open(CatalogPath(folder), create));
  if (create) {
    fs::create_directories(StagingFolder(folder), code);
    CULPRIT_TRY(SyncFolder(folder));
  }
  return Corpus(std::make_unique<CorpusState>(folder, std::move(catalog)));
}

const std::string& Corpus::folder() const { return state_->folder; }

std::string Corpus::TracePath(const TraceRow& row) const {
  return TracesFolder(state_->folder) + "/" + row.file;
}

// Under the write lock: a file that another
// process has put in place again by now has been pardoned, and stays.
Status ExecuteCondemned(CorpusState& state) {
  CULPRIT_TRY(state.catalog.Begin());
  Status done = [&]() -> Status {
    CULPRIT_ASSIGN(const std::vector<std::string> files, state.catalog.Condemned());
    for (const std::string& file : files) {
      const std::string path = TracesFolder(state.folder) + "/" + file;
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError("remove", path);
      RemoveSummaries(state.folder, file);
      CULPRIT_TRY(state.catalog.Pardon(file));
    }
    if (!files.empty()) CULPRIT_TRY(SyncFolder(TracesFolder(state.folder)));
    return state.catalog.Commit();
  }();
  if (!done.ok()) state.catalog.Rollback();
  return done;
}

namespace {

Error UnknownTrace(Catalog& catalog, const std::string& folder, const std::string& name) {
  Error error{.message = "has no trace '" + name + "'", .file = folder};
  const auto rows = catalog.List({});
  if (!rows.ok()) return error;
  std::vector<std::string_view> names;
  names.reserve(rows.value().size());
  for (const TraceRow& row : rows.value()) names.push_back(row.name);
  if (const auto nearest = Nearest(name, names))
    error.message += "; did you mean '" + std::string(*nearest) + "'?";
  error.hint = "'culprit corpus list " + folder + "' shows the names";
  return error;
}

}  // namespace

Result<uint64_t> Corpus::Remove(const std::vector<std::string>& names) {
  const std::set<std::string> distinct(names.begin(), names.end());
  const std::lock_guard lock(state_->mutex);
  Catalog& catalog = state_->catalog;
  CULPRIT_TRY(catalog.Begin());
  const Status done = [&]() -> Status {
    for (const std::string& name : distinct) {
      CULPRIT_ASSIGN(const std::optional<TraceRow> row, catalog.FindByName(name));
      if (!row) return UnknownTrace(catalog, state_->folder, name);
      CULPRIT_TRY(catalog.Delete(row->id));
      CULPRIT_TRY(catalog.Condemn(row->file));
    }
    return catalog.Commit();
  }();
  if (!done.ok()) {
    catalog.Rollback();
    return done.error();
  }
  // The traces are gone from here on, whatever becomes of their files: what
  // cannot be removed now is tried again by the next removal or repair.
  (void)ExecuteCondemned(*state_).ok();
  return static_cast<uint64_t>(distinct.size());
}

Result<TraceRow> Corpus::Find(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  CULPRIT_ASSIGN(std::optional<TraceRow> row, state_->catalog.FindByName(name));
  if (!row) return UnknownTrace(state_->catalog, state_->folder, name);
  return std::move(*row);
}

Result<std::vector<TraceRow>> Corpus::List(const TraceFilter& filter) const {
  const std::lock_guard lock(state_->mutex);
  return state_->catalog.List(filter);
}

Result<std::vector<ScenarioRow>> Corpus::Scenarios() const {
  const std::lock_guard lock(state_->mutex);
  return state_->catalog.Scenarios();
}

Result<std::vector<InstanceRow>> Corpus::Instances(const std::string& scenario,
                                                   uint64_t limit) const {
  const std::lock_guard lock(state_->mutex);
  CULPRIT_ASSIGN(std::vector<InstanceRow> rows, state_->catalog.Instances(scenario, limit));
  if (!rows.empty()) return rows;
  Error error{.message = "has no instance of scenario '" + scenario + "'",
              .file = state_->folder,
              .hint = "'culprit corpus list " + state_->folder + " --scenarios' shows the names"};
  CULPRIT_ASSIGN(const std::vector<ScenarioRow> scenarios, state_->catalog.Scenarios());
  std::vector<std::string_view> names;
  names.reserve(scenarios.size());
  for (const ScenarioRow& row : scenarios) names.push_back(row.name);
  if (const auto nearest = Nearest(scenario, names))
    error.message += "; did you mean '" + std::string(*nearest) + "'?";
  return error;
}

Result<std::vector<InstanceRow>> Corpus::InstancesOf(const TraceRow& row) const {
  const std::lock_guard lock(state_->mutex);
  return state_->catalog.InstancesOf(row.id);
}

}  // namespace culprit::corpus
