// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/parallel.h"
#include "corpus/state.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesAtOnce = 64;

// One repair at a time; the lock goes with the process, so a killed repair
// does not block the next.
class FolderLock {
 public:
  static Result<FolderLock> Take(const std::string& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoError("open", folder);
    FolderLock lock(fd);
    if (::flock(fd, LOCK_EX) != 0) return ErrnoError("lock", folder);
    return lock;
  }
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

// What only the old catalog knew, by SHA-256.
struct Remembered {
  std::string name;
  std::map<std::string, std::string> labels;
};
using Memory = std::map<std::string, Remembered>;

std::string BrokenPath(const std::string& folder, uint64_t n) {
  return CatalogPath(folder) + ".broken-" + std::to_string(n);
}

uint64_t FirstFreeBroken(const std::string& folder) {
  uint64_t n = 1;
  while (::access(BrokenPath(folder, n).c_str(), F_OK) == 0) ++n;
  return n;
}

// Reads on until the damage; every row before it is worth having. A missing
// catalog may be that of a repair killed between its two renames: then the
// newest one put aside is the one to read.
Memory Salvage(const std::string& folder) {
  Memory memory;
  std::string path = CatalogPath(folder);
  if (::access(path.c_str(), F_OK) != 0) path = BrokenPath(folder, FirstFreeBroken(folder) - 1);
  auto opened = Database::Open(path, Database::Mode::kReadWrite);
  if (!opened.ok()) return memory;
  const Database database = std::move(opened).value();
  auto names = database.Prepare("SELECT sha256, name FROM traces NOT INDEXED");
  if (!names.ok()) return memory;
  while (true) {
    const auto row = names.value().Step();
    if (!row.ok() || !row.value()) break;
    memory[names.value().Text(0)].name = names.value().Text(1);
  }
  auto labels = database.Prepare(
      "SELECT t.sha256, l.key, l.value FROM traces t NOT INDEXED JOIN labels l ON l.trace = t.id");
  if (!labels.ok()) return memory;
  while (true) {
    const auto row = labels.value().Step();
    if (!row.ok() || !row.value()) break;
    const auto known = memory.find(labels.value().Text(0));
    if (known != memory.end())
      known->second.labels[labels.value().Text(1)] = labels.value().Text(2);
  }
  return memory;
}

Status InsertEntry(Catalog& catalog, const std::string& file, CatalogEntry& entry,
                   const Memory& memory) {
  TraceRow& row = entry.row;
  CULPRIT_ASSIGN(const std::optional<TraceRow> there, catalog.FindBySha256(row.sha256));
  if (there) return {};
  const auto known = memory.find(row.sha256);
  std::string wanted = "recovered-" + row.sha256.substr(0, 12);
  if (known != memory.end()) {
    wanted = CleanName(known->second.name);
    for (const auto& [key, value] : known->second.labels) row.labels[key] = value;
  }
  CULPRIT_ASSIGN(row.name, catalog.FreeName(wanted));
  row.file = file;
  row.added_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  CULPRIT_TRY(catalog.Insert(row, entry.instances));
  return {};
}

Status Fill(Catalog& catalog, const std::string& folder, const std::vector<std::string>& files,
            size_t jobs, Progress& progress) {
  const Memory memory = Salvage(folder);
  progress.Start("reading", "traces", files.size());
  CULPRIT_TRY(catalog.Begin());
  for (size_t begin = 0; begin < files.size(); begin += kFilesAtOnce) {
    std::vector<std::optional<CatalogEntry>> entries(std::min(kFilesAtOnce, files.size() - begin));
    ParallelFor(entries.size(), jobs, [&](size_t i) {
      auto entry =
          MakeCatalogEntry(TracesFolder(folder) + "/" + files[begin + i], BlockCheck::kDecode);
      // Unreadable files stay where they are; the check reports them as stray.
      if (entry.ok()) entries[i] = std::move(entry).value();
      progress.Advance();
    });
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i]) CULPRIT_TRY(InsertEntry(catalog, files[begin + i], *entries[i], memory));
  }
  progress.Finish();
  return catalog.Commit();
}

// The journal goes first: left behind, it would be taken for that of the new
// catalog and rolled back into it.
Result<std::string> MoveAside(const std::string& folder) {
  const std::string path = CatalogPath(folder);
  const std::string aside = BrokenPath(folder, FirstFreeBroken(folder));
  const std::string journal = "-journal";
  if (::rename((path + journal).c_str(), (aside + journal).c_str()) != 0 && errno != ENOENT)
    return ErrnoError("move", path + journal);
  if (::rename(path.c_str(), aside.c_str()) == 0) return aside;
  if (errno == ENOENT) return std::string();
  return ErrnoError("move", path);
}

}  // namespace

Result<std::string> RebuildCatalog(const std::string& folder, const CheckOptions& options,
                                   Progress& progress) {
  CULPRIT_ASSIGN(const FolderLock lock, FolderLock::Take(folder));
  CULPRIT_ASSIGN(const CatalogState state, ProbeCatalog(CatalogPath(folder), true));
  // Another repair was faster.
  if (state == CatalogState::kGood) return std::string();
  CULPRIT_ASSIGN(const std::vector<std::string> files, ContentFiles(folder));
  // Made whole under another name: a repair killed half-way has changed nothing.
  const std::string fresh = CatalogPath(folder) + ".new";
  ::unlink(fresh.c_str());
  ::unlink((fresh + "-journal").c_str());
  {
    CULPRIT_ASSIGN(Catalog catalog, Catalog::Open(fresh, true));
    CULPRIT_TRY(Fill(catalog, folder, files, options.jobs, progress));
  }
  CULPRIT_ASSIGN(std::string aside, MoveAside(folder));
  if (::rename(fresh.c_str(), CatalogPath(folder).c_str()) != 0)
    return ErrnoError("move into", CatalogPath(folder));
  CULPRIT_TRY(SyncFolder(folder));
  return aside;
}

}  // namespace culprit::corpus
