// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/session_files.h"

#include <cerrno>
#include <cstring>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {
namespace {

constexpr int kLowestFd = 512;
constexpr size_t kMaxPath = 512;

char g_folder_path[kMaxPath];
HeldFile g_folder;

int MoveHigh(int fd) {
  // Where the limit is lower, as high as it goes: 512, 256, ... 64.
  for (int lowest = kLowestFd; lowest >= 64; lowest /= 2) {
    const int high = RawFcntl(fd, F_DUPFD_CLOEXEC, lowest);
    if (high < 0) continue;
    RawClose(fd);
    return high;
  }
  return fd;
}

// The folder's descriptor outlives a chroot; its path outlives a program that
// closes all descriptors.
int FolderFd() {
  if (!g_folder.IsOurs()) {
    g_folder.Forget();
    g_folder.Open(AT_FDCWD, g_folder_path, O_PATH | O_DIRECTORY);
  }
  return g_folder.held() ? g_folder.fd() : -1;
}

// For file systems that cannot allocate without writing.
bool FillWithZeros(int fd, size_t bytes) {
  static const uint8_t zeros[4096] = {};
  for (size_t done = 0; done < bytes;) {
    const size_t part = bytes - done < sizeof(zeros) ? bytes - done : sizeof(zeros);
    const long wrote = RawWrite(fd, zeros, part);
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

long Allocate(int fd, size_t bytes) {
  return RawSyscall(SYS_fallocate, fd, 0, 0, static_cast<long>(bytes));
}

// How much of a new file was allocated; 0: there is no room.
size_t MakeRoom(int fd, size_t bytes, size_t front) {
  const long made = Allocate(fd, front);
  if (made == -EOPNOTSUPP) return FillWithZeros(fd, bytes) ? bytes : 0;
  if (made != 0) return 0;
  const bool sized = RawSyscall(SYS_ftruncate, fd, static_cast<long>(bytes)) == 0;
  return sized ? front : 0;
}

}  // namespace

bool HeldFile::Open(int folder, const char* path, int flags, int mode) {
  const int opened = RawOpenAt(folder, path, flags | O_CLOEXEC, mode);
  if (opened < 0) return false;
  Adopt(opened);
  return held();
}

void HeldFile::Adopt(int opened) {
  const int high = MoveHigh(opened);
  struct stat status = {};
  if (RawFstat(high, &status) != 0) {
    RawClose(high);
    return Forget();
  }
  fd_plus_one_ = high + 1;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void HeldFile::Close() {
  if (IsOurs()) RawClose(fd());
  Forget();
}

bool HeldFile::IsOurs() const {
  struct stat status = {};
  return held() && RawFstat(fd(), &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

FileName& FileName::Add(const char* text) {
  while (*text != 0 && size_ + 1 < sizeof(text_)) text_[size_++] = *text++;
  text_[size_] = 0;
  return *this;
}

FileName& FileName::Add(uint64_t number) {
  char digits[24];
  char* first = digits + sizeof(digits) - 1;
  *first = 0;
  do {
    *--first = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return Add(first);
}

bool OpenSessionFolder(const char* path) {
  const size_t length = strlen(path);
  if (length == 0 || length >= kMaxPath) return false;
  memcpy(g_folder_path, path, length + 1);
  g_folder.Close();
  return FolderFd() >= 0;
}

bool OpenSessionFile(const char* name, int flags, HeldFile& file) {
  const int folder = FolderFd();
  file.Forget();
  return folder >= 0 && file.Open(folder, name, flags, 0600);
}

bool OpenSessionFileAnew(FileName name, HeldFile& file) {
  constexpr int kAnew = O_WRONLY | O_CREAT | O_TRUNC;
  return OpenSessionFile(name.text(), kAnew, file) ||
         OpenSessionFile(name.Add(wire::kLaterFile).text(), kAnew, file);
}

void RemoveSessionFile(const char* name) {
  const int folder = FolderFd();
  if (folder >= 0) RawSyscall(SYS_unlinkat, folder, Word(name), 0);
}

SharedMemory CreateShared(const char* name, size_t bytes, size_t front) {
  const int folder = FolderFd();
  if (folder < 0) return {};
  RawSyscall(SYS_unlinkat, folder, Word(name), 0);
  HeldFile file;
  if (!file.Open(folder, name, O_RDWR | O_CREAT | O_EXCL, 0600)) return {};
  SharedMemory made;
  made.allocated = MakeRoom(file.fd(), bytes, front);
  if (made.allocated != 0) {
    made.memory = RawMap(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd());
  }
  if (made.memory == nullptr) RawSyscall(SYS_unlinkat, folder, Word(name), 0);
  file.Close();
  return made;
}

Allocation AllocateShared(const char* name, size_t bytes) {
  HeldFile file;
  if (!OpenSessionFile(name, O_RDWR, file)) return Allocation::kNotOpened;
  const bool allocated = Allocate(file.fd(), bytes) == 0;
  file.Close();
  return allocated ? Allocation::kDone : Allocation::kNoRoom;
}

const void* MapForReading(const char* name, size_t bytes) {
  HeldFile file;
  if (!OpenSessionFile(name, O_RDONLY, file)) return nullptr;
  struct stat status = {};
  const void* memory = nullptr;
  if (RawFstat(file.fd(), &status) == 0 && status.st_size >= static_cast<off_t>(bytes)) {
    memory = RawMap(bytes, PROT_READ, MAP_SHARED, file.fd());
  }
  file.Close();
  return memory;
}

uint8_t* ReadWhole(const char* name, size_t limit, size_t& bytes) {
  HeldFile file;
  if (!OpenSessionFile(name, O_RDONLY, file)) return nullptr;
  struct stat status = {};
  uint8_t* memory = nullptr;
  bytes = 0;
  if (RawFstat(file.fd(), &status) == 0 && status.st_size > 0 &&
      static_cast<uint64_t>(status.st_size) <= limit) {
    bytes = static_cast<size_t>(status.st_size);
    memory = static_cast<uint8_t*>(MapMemory(bytes));
  }
  for (size_t done = 0; memory != nullptr && done < bytes;) {
    const long got = RawPread(file.fd(), memory + done, bytes - done, done);
    if (got <= 0) {
      RawUnmap(memory, bytes);
      memory = nullptr;
      break;
    }
    done += static_cast<size_t>(got);
  }
  file.Close();
  return memory;
}

}  // namespace culprit::guard::runtime
