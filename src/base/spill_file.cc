// SPDX-License-Identifier: Apache-2.0
#include "base/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace culprit {
namespace {

std::string SpillFolder(const std::string& given) {
  if (!given.empty()) return given;
  const char* set = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (set != nullptr && *set != '\0') return set;
  std::error_code code;
  return std::filesystem::is_directory("/var/tmp", code) ? "/var/tmp" : "/tmp";
}

int OpenNameless(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  // Not every file system has such files: NFS and overlays of old kernels do not.
  std::string name = folder + "/culprit-spill-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

Result<SpillFile> SpillFile::Create(const std::string& folder) {
  std::string chosen = SpillFolder(folder);
  const int fd = OpenNameless(chosen);
  if (fd < 0) return ErrnoError("create a temporary file in", chosen);
  return SpillFile(fd, std::move(chosen));
}

SpillFile::SpillFile(SpillFile&& other) noexcept
    : fd_(other.fd_), size_(other.size_), folder_(std::move(other.folder_)) {
  other.fd_ = -1;
}

SpillFile::~SpillFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status SpillFile::Append(const void* bytes, size_t count) {
  const auto* from = static_cast<const char*>(bytes);
  for (size_t done = 0; done < count;) {
    const ssize_t wrote =
        ::pwrite(fd_, from + done, count - done, static_cast<off_t>(size_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const Error error = ErrnoError("write a temporary file in", folder_);
      // What was written of it must not be taken for data; failing that is harmless,
      // because size_ stays.
      if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) errno = 0;
      return error;
    }
    done += static_cast<size_t>(wrote);
  }
  size_ += count;
  return {};
}

Result<void*> SpillFile::Map(size_t bytes) {
  // Without this a full disk would show as a signal at a store into the memory.
  const int reserved = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (reserved != 0) {
    errno = reserved;
    return ErrnoError("reserve a temporary file in", folder_);
  }
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (block == MAP_FAILED) return ErrnoError("map a temporary file in", folder_);
  return block;
}

Status SpillFile::ReadAt(uint64_t offset, void* to, size_t count) const {
  auto* into = static_cast<char*>(to);
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::pread(fd_, into + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("read a temporary file in", folder_);
    if (got == 0)
      return Error{.message = "a temporary file is shorter than written", .file = folder_};
    done += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace culprit
