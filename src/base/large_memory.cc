// SPDX-License-Identifier: Apache-2.0
#include "base/large_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>

#include "base/spill_file.h"

namespace culprit {
namespace {

std::atomic<uint64_t> g_bound = 0;
std::atomic<uint64_t> g_heap_bytes = 0;
std::atomic<uint64_t> g_mapped_bytes = 0;

struct Mappings {
  std::mutex mutex;
  std::map<void*, size_t> blocks;
  std::string why_not;
};

// Never destroyed: static objects may free tables after it would be.
Mappings& TheMappings() {
  static Mappings* mappings = new Mappings;
  return *mappings;
}

// Pages of files that this process has in its memory, the program's own included.
uint64_t ResidentFileBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long all = 0;
  unsigned long resident = 0;
  unsigned long shared = 0;
  const int read = std::fscanf(file, "%lu %lu %lu", &all, &resident, &shared);
  std::fclose(file);
  return read == 3 ? uint64_t{shared} * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void* Map(size_t bytes) {
  Result<SpillFile> file = SpillFile::Create();
  Result<void*> block = file.ok() ? file.value().Map(bytes) : Result<void*>(file.error());
  Mappings& mappings = TheMappings();
  const std::lock_guard lock(mappings.mutex);
  if (!block.ok()) {
    if (mappings.why_not.empty()) mappings.why_not = block.error().ToString();
    return nullptr;
  }
  mappings.blocks.emplace(block.value(), bytes);
  g_mapped_bytes += bytes;
  return block.value();
}

bool Unmap(void* block) {
  Mappings& mappings = TheMappings();
  const std::lock_guard lock(mappings.mutex);
  const auto found = mappings.blocks.find(block);
  if (found == mappings.blocks.end()) return false;
  ::munmap(found->first, found->second);
  g_mapped_bytes -= found->second;
  mappings.blocks.erase(found);
  return true;
}

}  // namespace

void LargeMemory::SetBound(uint64_t bytes) { g_bound = bytes; }
uint64_t LargeMemory::bound() { return g_bound; }
uint64_t LargeMemory::heap_bytes() { return g_heap_bytes; }
uint64_t LargeMemory::mapped_bytes() { return g_mapped_bytes; }

std::string LargeMemory::why_not_mapped() {
  Mappings& mappings = TheMappings();
  const std::lock_guard lock(mappings.mutex);
  return mappings.why_not;
}

void LargeMemory::KeepWithinBound() {
  if (g_mapped_bytes <= g_bound || ResidentFileBytes() <= g_bound) return;
  Mappings& mappings = TheMappings();
  const std::lock_guard lock(mappings.mutex);
  // Of a shared mapping of a file nothing is lost by this.
  for (const auto& [block, bytes] : mappings.blocks) ::madvise(block, bytes, MADV_DONTNEED);
}

void* LargeMemory::Allocate(size_t bytes) {
  if (bytes < kLargeBytes) return ::operator new(bytes);
  const uint64_t bound = g_bound;
  if (bound != 0 && g_heap_bytes + bytes > bound) {
    if (void* block = Map(bytes); block != nullptr) return block;
  }
  void* block = ::operator new(bytes);
  g_heap_bytes += bytes;
  return block;
}

void LargeMemory::Free(void* block, size_t bytes) noexcept {
  if (bytes >= kLargeBytes) {
    if (g_mapped_bytes != 0 && Unmap(block)) return;
    g_heap_bytes -= bytes;
  }
  ::operator delete(block);
}

}  // namespace culprit
