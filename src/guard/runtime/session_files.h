// SPDX-License-Identifier: Apache-2.0
//
// The session folder as the target sees it. Everything is opened close-on-exec
// and moved to a high number, so that programs which count, list or choose their
// descriptors notice nothing. A program may close what it did not open (daemons
// close everything): a HeldFile is written to only while its descriptor still is the
// file that was opened, and never after.
//
// OpenSessionFolder once; the rest from any thread, also in forked children. No
// C library, no memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace culprit::guard::runtime {

class HeldFile {
 public:
  bool Open(int folder, const char* path, int flags, int mode = 0);
  void Adopt(int fd);
  void Close();  // only what is ours
  void Forget() { fd_plus_one_ = 0; }
  bool IsOurs() const;
  bool held() const { return fd_plus_one_ > 0; }
  int fd() const { return fd_plus_one_ - 1; }

 private:
  int fd_plus_one_ = 0;  // memory that the kernel wiped holds nothing
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

// A name such as "log.12.34", made without the C library.
class FileName {
 public:
  explicit FileName(const char* text) { Add(text); }
  FileName& Add(const char* text);
  FileName& Add(uint64_t number);
  const char* text() const { return text_; }

 private:
  char text_[64] = {};
  size_t size_ = 0;
};

// False: it is not there, or its name is too long.
bool OpenSessionFolder(const char* path);

// False: nothing is held.
bool OpenSessionFile(const char* name, int flags, HeldFile& file);

// To be written from its begin; wire.h, kLaterFile.
bool OpenSessionFileAnew(FileName name, HeldFile& file);

void RemoveSessionFile(const char* name);

struct SharedMemory {
  void* memory = nullptr;
  size_t allocated = 0;  // writing to these cannot raise a signal
};
// A new file of so many bytes, zero, mapped for writing, at least the first `front` of them
// allocated. One of the same name is replaced. Null: no room.
SharedMemory CreateShared(const char* name, size_t bytes, size_t front);
// Of a file that was created so and not allocated as a whole.
enum class Allocation { kDone, kNoRoom, kNotOpened };
Allocation AllocateShared(const char* name, size_t bytes);

// Maps a file that is at least so long. nullptr: it is not.
const void* MapForReading(const char* name, size_t bytes);

// The whole file in memory of our own. nullptr: absent, empty or above `limit`.
uint8_t* ReadWhole(const char* name, size_t limit, size_t& bytes);

}  // namespace culprit::guard::runtime
