// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>

namespace culprit {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

std::string ParentFolder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Error ExistsError(const std::string& path) {
  return {.message = "exists already; nothing was written",
          .file = path,
          .hint = "choose another name, or pass --force to overwrite it"};
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError("write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

Result<InputFile> InputFile::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoError("open", path);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    Error error = ErrnoError("stat", path);
    ::close(fd);
    return error;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return Error{.message = "is not a regular file", .file = path};
  }
  return InputFile(path, fd, static_cast<uint64_t>(info.st_size));
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status InputFile::ReadAt(uint64_t offset, size_t count, std::string& out) const {
  const uint64_t available = offset < size_ ? size_ - offset : 0;
  out.resize(static_cast<size_t>(std::min<uint64_t>(count, available)));
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError("read", path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  out.resize(done);
  return {};
}

Result<std::string> ReadWholeFile(const std::string& path) {
  CULPRIT_ASSIGN(InputFile file, InputFile::Open(path));
  std::string bytes;
  CULPRIT_TRY(file.ReadAt(0, file.size(), bytes));
  return bytes;
}

Result<std::string> CreateTemporary(const std::string& path, Overwrite overwrite) {
  static std::atomic<unsigned> serial{0};
  struct stat info {};
  if (overwrite == Overwrite::kRefuse && ::lstat(path.c_str(), &info) == 0) {
    return ExistsError(path);
  }
  // Processes in containers or on hosts that share a disk may have the same
  // number, and one that was killed leaves its temporary: then the next is free.
  constexpr int kTries = 1000;
  for (int i = 0;; ++i) {
    std::string temporary =
        path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST && i < kTries) continue;
    if (fd < 0) return ErrnoError("create", path);
    ::close(fd);
    return temporary;
  }
}

Status Publish(const std::string& temporary, const std::string& path, Overwrite overwrite) {
  const int fd = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", path);
  Status synced;
  if (::fsync(fd) != 0) synced = ErrnoError("sync", path);
  ::close(fd);
  CULPRIT_TRY(synced);
  const bool linked =
      overwrite == Overwrite::kRefuse && ::link(temporary.c_str(), path.c_str()) == 0;
  if (linked) {
    ::unlink(temporary.c_str());
  } else {
    if (overwrite == Overwrite::kRefuse && errno == EEXIST) return ExistsError(path);
    // Some file systems have no hard links; there, rename is the best there is.
    if (::rename(temporary.c_str(), path.c_str()) != 0) return ErrnoError("rename into", path);
  }
  return SyncFolder(ParentFolder(path));
}

Result<AtomicFile> AtomicFile::Create(const std::string& path, Overwrite overwrite) {
  CULPRIT_ASSIGN(std::string temporary, CreateTemporary(path, overwrite));
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", path);
  return AtomicFile(path, std::move(temporary), fd, overwrite);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      overwrite_(other.overwrite_),
      buffer_(std::move(other.buffer_)),
      written_(other.written_) {}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::Write(std::string_view bytes) {
  written_ += bytes.size();
  buffer_.append(bytes);
  return buffer_.size() >= kBufferBytes ? Flush() : Status();
}

Status AtomicFile::Flush() {
  CULPRIT_TRY(WriteAll(fd_, buffer_, path_));
  buffer_.clear();
  return {};
}

Status AtomicFile::Commit() {
  CULPRIT_CHECK(fd_ >= 0);
  CULPRIT_TRY(Flush());
  CULPRIT_TRY(Publish(temporary_, path_, overwrite_));
  ::close(std::exchange(fd_, -1));
  return {};
}

Status WriteWholeFile(const std::string& path, std::string_view bytes, Overwrite overwrite) {
  CULPRIT_ASSIGN(AtomicFile file, AtomicFile::Create(path, overwrite));
  CULPRIT_TRY(file.Write(bytes));
  return file.Commit();
}

Status SyncFolder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError("open", folder);
  const int outcome = ::fsync(fd);
  // EINVAL: a file system without folder sync; nothing more can be done there.
  if (outcome != 0 && errno != EINVAL) {
    Error error = ErrnoError("sync", folder);
    ::close(fd);
    return error;
  }
  ::close(fd);
  return {};
}

Result<std::string> FileSha256(const std::string& path) {
  CULPRIT_ASSIGN(InputFile file, InputFile::Open(path));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(),
                                                                     &EVP_MD_CTX_free);
  CULPRIT_CHECK(hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1);
  std::string chunk;
  for (uint64_t offset = 0; offset < file.size(); offset += chunk.size()) {
    CULPRIT_TRY(file.ReadAt(offset, kBufferBytes, chunk));
    if (chunk.empty()) return Error{.message = "became shorter while it was read", .file = path};
    CULPRIT_CHECK(EVP_DigestUpdate(hash.get(), chunk.data(), chunk.size()) == 1);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  CULPRIT_CHECK(EVP_DigestFinal_ex(hash.get(), digest, &length) == 1);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text.push_back(kHex[digest[i] >> 4]);
    text.push_back(kHex[digest[i] & 15]);
  }
  return text;
}

}  // namespace culprit
