// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/code_writer.h"

#include <linux/membarrier.h>
#include <sys/auxv.h>

#include <cstring>

#include "guard/runtime/code_address.h"
#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kLineBytes = 64, kChunkBytes = 4096;

uint64_t PageOf(uint64_t address) { return address & ~(getauxval(AT_PAGESZ) - 1); }
uint64_t PageEnd(const CodePatch& patch) {
  return PageOf(patch.address + patch.size - 1) + getauxval(AT_PAGESZ);
}

// One store instruction where the bytes lie in one cache line (on arm64 patches
// are aligned words). The store is written in assembly because the compiler may
// split an unaligned copy.
void Store(const CodePatch& patch) {
  auto* to = BytesAt(patch.address);
#if defined(__aarch64__)
  if (patch.size == 4 && patch.address % 4 == 0) {
    uint32_t word = 0;
    std::memcpy(&word, patch.bytes, 4);
    __atomic_store_n(reinterpret_cast<uint32_t*>(to), word, __ATOMIC_RELEASE);
    return;
  }
#elif defined(__x86_64__)
  const uint64_t line = patch.address & ~uint64_t{63};
  if (patch.size <= 8 && patch.address + patch.size <= line + 64) {
    const uint64_t from = patch.address % 8 + patch.size <= 8 ? patch.address & ~uint64_t{7}
                          : patch.address + 8 <= line + 64    ? patch.address
                                                              : line + 56;
    uint64_t word = 0;
    std::memcpy(&word, BytesAt(from), 8);
    std::memcpy(reinterpret_cast<uint8_t*>(&word) + (patch.address - from), patch.bytes,
                patch.size);
    asm volatile("movq %1, (%0)" : : "r"(from), "r"(word) : "memory");
    return;
  }
#endif
  std::memcpy(to, patch.bytes, patch.size);
}

bool ProtectRun(uint64_t begin, uint64_t end, int protection) {
  return RawSyscall(SYS_mprotect, static_cast<long>(begin), static_cast<long>(end - begin),
                    protection) == 0;
}

bool WriteFile(int fd, const CodePatch& patch) {
  return RawSyscall(SYS_pwrite64, fd, Word(patch.bytes), patch.size,
                    static_cast<long>(patch.address)) == patch.size;
}

int OpenMemory() { return RawOpenAt(AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC); }

}  // namespace

bool SynchronizeCores() {
  const long registered =
      RawSyscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  return registered == 0 &&
         RawSyscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

void FlushCode(uint64_t address, uint64_t size) {
  __builtin___clear_cache(reinterpret_cast<char*>(BytesAt(address)),
                          reinterpret_cast<char*>(BytesAt(address + size)));
}

// A function of our own that returns 1 is run, rewritten through the file to
// return 2, and run again: this finds kernels that forbid the write, and
// emulators that would go on executing what they have translated before.
bool CodeWriter::FileWorks() {
  if (file_probe_ != Probe::kUntried) return file_probe_ == Probe::kWorks;
  file_probe_ = Probe::kFails;
#if defined(__aarch64__)
  const uint8_t one[] = {0x20, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};  // mov w0, #1; ret
  const uint8_t two[] = {0x40, 0x00, 0x80, 0x52};                          // mov w0, #2
#else
  const uint8_t one[] = {0xb8, 1, 0, 0, 0, 0xc3, 0x90, 0x90};  // mov eax, 1; ret
  const uint8_t two[] = {0xb8, 2, 0, 0};
#endif
  const uint64_t bytes = getauxval(AT_PAGESZ);
  void* page = RawMap(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (page == nullptr) return false;
  const auto address = reinterpret_cast<uint64_t>(page);
  std::memcpy(page, one, sizeof(one));
  FlushCode(address, sizeof(one));
  if (ProtectRun(address, address + bytes, PROT_READ | PROT_EXEC)) {
    int (*run)() = nullptr;
    std::memcpy(&run, &page, sizeof(run));
    const int fd = OpenMemory();
    if (fd >= 0) {
      if (run() == 1 && WriteFile(fd, {address, two, sizeof(two)}) && run() == 2) {
        file_probe_ = Probe::kWorks;
      }
      RawClose(fd);
    }
  }
  RawUnmap(page, bytes);
  return file_probe_ == Probe::kWorks;
}

size_t CodeWriter::Write(std::span<const CodePatch> patches, WritePath path, bool whole) {
#if defined(__x86_64__)
  const bool file_is_whole = false;  // the kernel copies bytes
#else
  const bool file_is_whole = true;  // an aligned word is copied as one
#endif
  size_t done = 0;
  if (path != WritePath::kMprotect && (file_is_whole || !whole) && FileWorks()) {
    done = WriteThroughFile(patches);
  }
  if (path != WritePath::kProcMem) done += WriteByProtection(patches.subspan(done));
  return done;
}

// One write for all patches of a page: the bytes between them are written as they
// are. The kernel copies whole lines in aligned words, so every instruction is
// seen as it was or as it will be.
size_t CodeWriter::WriteThroughFile(std::span<const CodePatch> patches) {
  const int fd = OpenMemory();
  if (fd < 0) return 0;
  size_t done = 0;
  while (done < patches.size()) {
    const uint64_t begin = patches[done].address & ~(kLineBytes - 1);
    const uint64_t limit = (begin & ~(kChunkBytes - 1)) + kChunkBytes;
    uint64_t end = 0;
    size_t next = done;
    for (; next < patches.size() && patches[next].address + patches[next].size <= limit; ++next) {
      end = patches[next].address + patches[next].size;
    }
    if (next == done) {  // over the edge of two pages
      if (!WriteFile(fd, patches[done])) break;
      ++done;
      continue;
    }
    end = (end + kLineBytes - 1) & ~(kLineBytes - 1);
    alignas(kLineBytes) uint8_t chunk[kChunkBytes];
    std::memcpy(chunk, BytesAt(begin), end - begin);
    for (size_t i = done; i < next; ++i) {
      std::memcpy(chunk + (patches[i].address - begin), patches[i].bytes, patches[i].size);
    }
    if (RawSyscall(SYS_pwrite64, fd, Word(chunk), static_cast<long>(end - begin),
                   static_cast<long>(begin)) != static_cast<long>(end - begin)) {
      break;
    }
    done = next;
  }
  RawClose(fd);
  return done;
}

// Pages stay executable meanwhile, because other threads (and this one, when the
// C library is patched) run on them: writable and executable for microseconds,
// and never longer.
size_t CodeWriter::WriteByProtection(std::span<const CodePatch> patches) {
  for (size_t first = 0; first < patches.size();) {
    uint64_t end = PageEnd(patches[first]);
    size_t next = first + 1;
    while (next < patches.size() && PageOf(patches[next].address) <= end) {
      end = PageEnd(patches[next]);
      ++next;
    }
    const uint64_t begin = PageOf(patches[first].address);
    if (!ProtectRun(begin, end, PROT_READ | PROT_WRITE | PROT_EXEC)) return first;
    for (size_t i = first; i < next; ++i) Store(patches[i]);
    ProtectRun(begin, end, PROT_READ | PROT_EXEC);
    FlushCode(begin, end - begin);
    first = next;
  }
  return patches.size();
}

}  // namespace culprit::guard::runtime
