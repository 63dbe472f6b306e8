// SPDX-License-Identifier: Apache-2.0
#include "guard/shared_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace culprit::guard {

Result<SharedFile> SharedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return ErrnoError("open", path);
  SharedFile file(fd);
  struct stat status = {};
  if (fstat(fd, &status) != 0) return ErrnoError("look at", path);
  if (!S_ISREG(status.st_mode)) return Error{.message = "not a regular file", .file = path};
  return file;
}

Result<SharedFile> SharedFile::Create(const std::string& path, uint64_t bytes) {
  constexpr mode_t kMode = 0644;  // the target may run as another user, and only reads it
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (fd < 0) return ErrnoError("create", path);
  SharedFile file(fd);
  if (fchmod(fd, kMode) != 0) return ErrnoError("set the mode of", path);
  const int code = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (code != 0) {
    errno = code;
    return ErrnoError("make room for", path);
  }
  return file;
}

SharedFile::SharedFile(SharedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

SharedFile& SharedFile::operator=(SharedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

SharedFile::~SharedFile() {
  if (fd_ >= 0) close(fd_);
}

bool SharedFile::ReadBytes(uint64_t offset, void* to, size_t bytes) const {
  const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
  // The kernel's copy is of ordinary loads, so later reads are held back here.
  std::atomic_thread_fence(std::memory_order_acquire);
  return got == static_cast<ssize_t>(bytes);
}

bool SharedFile::WriteBytes(uint64_t offset, const void* from, size_t bytes) const {
  std::atomic_thread_fence(std::memory_order_release);
  return pwrite(fd_, from, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

uint64_t SharedFile::size() const {
  struct stat status = {};
  return fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool SharedFile::removed() const {
  struct stat status = {};
  return fstat(fd_, &status) == 0 && status.st_nlink == 0;
}

int64_t SharedFile::owner() const {
  struct stat status = {};
  return fstat(fd_, &status) == 0 ? static_cast<int64_t>(status.st_uid) : -1;
}

}  // namespace culprit::guard
