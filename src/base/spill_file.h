// SPDX-License-Identifier: Apache-2.0
//
// SpillFile: a nameless temporary file for what does not fit into memory. It has
// no name from the first moment where the file system allows (O_TMPFILE), and
// loses it at once elsewhere, so nothing is left behind, not even after a kill.
// Append-only; reading is safe from several threads and beside an append.
//
// The folder is the one given, else TMPDIR, else /var/tmp, which unlike /tmp is on
// a disk everywhere, else /tmp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace culprit {

class SpillFile {
 public:
  static Result<SpillFile> Create(const std::string& folder = {});

  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&&) = delete;
  ~SpillFile();

  // All of it or an Error; after an Error the file is as it was before.
  Status Append(const void* bytes, size_t count);
  // Exactly `count` bytes, which must have been appended.
  Status ReadAt(uint64_t offset, void* to, size_t count) const;
  uint64_t size() const { return size_; }
  // An empty file as `bytes` of memory, zero at first, whose room on disk is reserved.
  // They outlive the SpillFile; munmap ends them, and with them the file.
  Result<void*> Map(size_t bytes);

 private:
  SpillFile(int fd, std::string folder) : fd_(fd), folder_(std::move(folder)) {}

  int fd_ = -1;
  uint64_t size_ = 0;
  std::string folder_;
};

}  // namespace culprit
