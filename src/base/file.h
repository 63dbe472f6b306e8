// SPDX-License-Identifier: Apache-2.0
//
// Files as this program uses them: read at offsets, written under a temporary
// name and renamed into place when whole. Reading is by pread, not by mapping:
// a file that another process cuts short then gives a short read, which is an
// ordinary damaged input, instead of a signal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace culprit {

// A regular file open for reading. size() is that at opening. Move-only;
// ReadAt is safe from several threads.
class InputFile {
 public:
  static Result<InputFile> Open(const std::string& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  // Fills `out` with the bytes at `offset`: fewer than `count` at the end.
  Status ReadAt(uint64_t offset, size_t count, std::string& out) const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  InputFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

Result<std::string> ReadWholeFile(const std::string& path);

enum class Overwrite { kRefuse, kAllow };

// An empty new file `PATH.tmp-PID-N` on its way to become PATH.
Result<std::string> CreateTemporary(const std::string& path, Overwrite overwrite);
// Makes it PATH: fsync, rename, fsync of the folder. With Overwrite::kRefuse it
// is linked instead, so that of two writers only one wins.
Status Publish(const std::string& temporary, const std::string& path, Overwrite overwrite);

// Writes to a temporary and publishes it as PATH on Commit(). Without Commit()
// the temporary is removed, so an interrupted command leaves PATH as it was.
// With Overwrite::kRefuse both Create() and Commit() fail when PATH exists.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path, Overwrite overwrite);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Write(std::string_view bytes);
  Status Commit();
  uint64_t written() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  AtomicFile(std::string path, std::string temporary, int fd, Overwrite overwrite)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), overwrite_(overwrite) {}
  Status Flush();

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  Overwrite overwrite_;
  std::string buffer_;
  uint64_t written_ = 0;
};

Status WriteWholeFile(const std::string& path, std::string_view bytes, Overwrite overwrite);
// Makes a rename or an unlink inside `folder` durable.
Status SyncFolder(const std::string& folder);
// Hexadecimal SHA-256 of a file's bytes: the content key of the corpus.
Result<std::string> FileSha256(const std::string& path);

}  // namespace culprit
