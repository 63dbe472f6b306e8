// SPDX-License-Identifier: Apache-2.0
//
// SharedFile: a file that another process has mapped and changes all the time.
// It is read and written by pread and pwrite, not mapped: whoever cuts it short
// then causes a short read here and no signal. Values of eight aligned bytes
// come whole. Read() of A and then of B sees B at least as new as A. Symbolic
// links are refused. Move-only; one thread at a time. A read costs about 300 ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/result.h"

namespace culprit::guard {

class SharedFile {
 public:
  static Result<SharedFile> Open(const std::string& path);
  // A new file with `bytes` zero bytes on disk, so that whoever maps it cannot
  // run out of room later.
  static Result<SharedFile> Create(const std::string& path, uint64_t bytes);

  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&& other) noexcept;
  ~SharedFile();

  // False if not all of it is there.
  bool ReadBytes(uint64_t offset, void* to, size_t bytes) const;
  bool WriteBytes(uint64_t offset, const void* from, size_t bytes) const;
  // Of passive structs and of std::atomic members read as plain bytes.
  template <class T>
  bool Read(uint64_t offset, T& to) const {
    return ReadBytes(offset, static_cast<void*>(&to), sizeof(T));
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  bool Write(uint64_t offset, const T& from) const { return WriteBytes(offset, &from, sizeof(T)); }
  uint64_t size() const;  // now
  int64_t owner() const;  // user id
  bool removed() const;   // nothing has it by a name any more

 private:
  explicit SharedFile(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace culprit::guard
