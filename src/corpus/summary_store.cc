// SPDX-License-Identifier: Apache-2.0
#include "corpus/summary_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "corpus/quick_write.h"
#include "corpus/sealed_bytes.h"

namespace culprit::corpus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTraceDigits = 32;  // as in the names of traces
constexpr size_t kFolderDigits = 2;
// Left behind by a process that was killed between writing and renaming.
constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr int64_t kUseIsOldSeconds = 86'400;

bool IsHex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string FolderOf(const std::string& summaries, std::string_view sha256) {
  return summaries + "/" + std::string(sha256.substr(0, kFolderDigits));
}

std::string NameOf(std::string_view sha256, const SummaryKind& kind, const std::string& digest) {
  return std::string(sha256.substr(0, kTraceDigits)) + "." + kind.name + "-" + digest;
}

// The id in the seal: all of the hash, where the name has its beginning.
std::string IdOf(std::string_view sha256, const std::string& digest) {
  return std::string(sha256) + "-" + digest;
}

std::string TraceOf(std::string_view file_name) {
  const size_t dot = file_name.find('.');
  if (dot != kTraceDigits || !IsHex(file_name.substr(0, dot))) return {};
  return std::string(file_name.substr(0, dot));
}

// So that trimming knows what is in use. Once a day is enough, and a folder that
// is read-only does not mind.
void NoteUse(const std::string& path, const struct stat& info) {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec - info.st_mtim.tv_sec < kUseIsOldSeconds) return;
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace

std::string SummariesFolder(const std::string& corpus_folder) {
  return corpus_folder + "/summaries";
}

SummaryStore::SummaryStore(const std::string& corpus_folder)
    : folder_(SummariesFolder(corpus_folder)), names_(folder_), stacks_(folder_, names_) {}

std::string SummaryStore::Pack(SummaryHead head, std::string_view payload) {
  switch (head) {
    case SummaryHead::kNames:
      return names_.Pack(payload);
    case SummaryHead::kStacks:
      return stacks_.Pack(payload);
    case SummaryHead::kNothing:
      break;
  }
  return std::string(payload);
}

std::optional<std::string> SummaryStore::Unpack(SummaryHead head, std::string payload) {
  switch (head) {
    case SummaryHead::kNames:
      return names_.Unpack(payload);
    case SummaryHead::kStacks:
      return stacks_.Unpack(payload);
    case SummaryHead::kNothing:
      break;
  }
  return payload;
}

std::optional<std::string> SummaryStore::Get(std::string_view trace_sha256,
                                             const SummaryKind& kind) {
  const std::string digest = ShortDigest(kind.parameters);
  const std::string path =
      FolderOf(folder_, trace_sha256) + "/" + NameOf(trace_sha256, kind, digest);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const Result<std::string> sealed = ReadWholeFile(path);
  if (!sealed.ok()) return std::nullopt;
  bytes_read_ += sealed.value().size();
  NoteUse(path, info);
  std::optional<std::string> payload =
      Unseal(kind.name, IdOf(trace_sha256, digest), sealed.value());
  return payload ? Unpack(kind.head, std::move(*payload)) : std::nullopt;
}

void SummaryStore::Put(std::string_view trace_sha256, const SummaryKind& kind,
                       std::string_view payload) {
  if (failed_) return;
  const std::string digest = ShortDigest(kind.parameters);
  const std::string folder = FolderOf(folder_, trace_sha256);
  const std::string path = folder + "/" + NameOf(trace_sha256, kind, digest);
  const auto fail = [&](const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!failed_.exchange(true)) why_not_kept_ = why;
  };
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return fail("cannot create " + folder + ": " + code.message());
  const std::string sealed = Seal(kind.name, IdOf(trace_sha256, digest), Pack(kind.head, payload));
  const Status written = WriteQuickly(path, sealed);
  if (!written.ok()) return fail(written.error().ToString());
  bytes_written_ += sealed.size();
}

std::string SummaryStore::why_not_kept() const {
  const std::lock_guard lock(mutex_);
  return why_not_kept_;
}

void RemoveSummaries(const std::string& corpus_folder, std::string_view trace) {
  trace = trace.substr(0, kTraceDigits);
  if (trace.size() < kTraceDigits) return;
  std::error_code code;
  std::vector<fs::path> condemned;
  for (fs::directory_iterator it(FolderOf(SummariesFolder(corpus_folder), trace), code), end;
       !code && it != end; it.increment(code)) {
    if (TraceOf(it->path().filename().string()) == trace) condemned.push_back(it->path());
  }
  for (const fs::path& path : condemned) fs::remove(path, code);
}

std::vector<SummaryFile> ListSummaries(const std::string& corpus_folder) {
  std::vector<SummaryFile> files;
  const std::string summaries = SummariesFolder(corpus_folder);
  const std::array<fs::path, 2> tables = {NamesFolder(summaries), StacksFolder(summaries)};
  std::error_code code;
  for (fs::recursive_directory_iterator it(SummariesFolder(corpus_folder), code), end;
       !code && it != end; it.increment(code)) {
    struct stat info {};
    if (std::ranges::count(tables, it->path()) != 0) it.disable_recursion_pending();
    if (::stat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const std::string name = it->path().filename().string();
    const bool temporary = name.find(kTemporaryMark) != std::string::npos;
    files.push_back({.path = fs::relative(it->path(), corpus_folder, code).string(),
                     .trace = TraceOf(name),
                     .bytes = static_cast<uint64_t>(info.st_size),
                     .used_s = info.st_mtim.tv_sec,
                     .temporary = temporary});
  }
  std::sort(files.begin(), files.end(),
            [](const SummaryFile& a, const SummaryFile& b) { return a.path < b.path; });
  return files;
}

bool IsWholeSummary(const std::string& corpus_folder, const SummaryFile& file,
                    std::string_view trace_sha256) {
  const std::string_view name = BaseName(file.path);
  const size_t dash = name.rfind('-');
  if (file.trace.empty() || dash == std::string_view::npos || dash <= kTraceDigits) return false;
  const std::string_view kind = name.substr(kTraceDigits + 1, dash - kTraceDigits - 1);
  const Result<std::string> sealed = ReadWholeFile(corpus_folder + "/" + file.path);
  return sealed.ok() &&
         IsSealed(kind, IdOf(trace_sha256, std::string(name.substr(dash + 1))), sealed.value());
}

Result<SummariesRemoved> TrimSummaries(const std::string& corpus_folder, uint64_t keep_bytes) {
  std::vector<SummaryFile> files = ListSummaries(corpus_folder);
  std::stable_sort(files.begin(), files.end(),
                   [](const SummaryFile& a, const SummaryFile& b) { return a.used_s > b.used_s; });
  SummariesRemoved removed;
  for (const SummaryFile& file : files) {
    if (removed.bytes_left + file.bytes <= keep_bytes) {
      removed.bytes_left += file.bytes;
      ++removed.files_left;
      continue;
    }
    const std::string path = corpus_folder + "/" + file.path;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError("remove", path);
    removed.bytes += file.bytes;
    ++removed.files;
  }
  std::error_code code;
  if (removed.files_left == 0) {
    fs::remove_all(NamesFolder(SummariesFolder(corpus_folder)), code);
    fs::remove_all(StacksFolder(SummariesFolder(corpus_folder)), code);
  }
  return removed;
}

}  // namespace culprit::corpus
