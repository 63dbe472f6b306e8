// SPDX-License-Identifier: Apache-2.0
// Reads a file past the page cache, so that every read waits for the disk. The
// operand names the file to make, on a file system that stands on a block device.
#include <fcntl.h>

#include <cstdlib>
#include <cstring>

#include "truth.h"

namespace {

constexpr int kReads = 16;
constexpr size_t kBytes = size_t{1} << 18;

bool WriteFile(const char* path, const void* buffer) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return false;
  for (int i = 0; i < kReads; ++i) {
    if (write(file, buffer, kBytes) != static_cast<ssize_t>(kBytes)) return false;
  }
  return fsync(file) == 0 && close(file) == 0;
}

PLANTED programs::Wait ReadFromTheDisk(int file, void* buffer) {
  programs::Wait wait = {.from_ns = programs::NowNs()};
  wait.wake_ns = wait.from_ns;
  if (read(file, buffer, kBytes) != static_cast<ssize_t>(kBytes)) _exit(1);
  wait.until_ns = programs::NowNs();
  return wait;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* buffer = std::aligned_alloc(4096, kBytes);
  std::memset(buffer, 'x', kBytes);
  if (!WriteFile(argv[1], buffer)) return 1;
  const int file = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file < 0) {
    programs::Tell(R"({"cannot":"this file system does not know O_DIRECT"})");
    return 0;
  }
  programs::Wait waits[kReads];
  for (programs::Wait& wait : waits) wait = ReadFromTheDisk(file, buffer);
  for (const programs::Wait& wait : waits) {
    programs::TellWait("disk", wait, "disk", "ReadFromTheDisk");
  }
  programs::Tell(R"({"bytes":%zu})", kReads * kBytes);
  return 0;
}
