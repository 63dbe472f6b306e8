// SPDX-License-Identifier: Apache-2.0
//
// Writes bytes over code that other threads may be executing. Two ways: through
// /proc/self/mem, which leaves protections as they are, or by mprotect of each
// run of pages to writable and back. The first is preferred; whether it works
// here (kernel option, a process that gave up its privileges, an emulator) is
// tried once on a page of our own. A store that must be seen whole (arm64: 4
// aligned bytes; x86-64: within a cache line) is one store instruction.
//
// Not thread-safe. Cost: one system call per page with patches, or two per run of
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace culprit::guard::runtime {

enum class WritePath : uint32_t { kBest, kProcMem, kMprotect };

struct CodePatch {
  uint64_t address = 0;
  const uint8_t* bytes = nullptr;
  uint32_t size = 0;  // at most 16
};

class CodeWriter {
 public:
  // Sorted by address. `whole`: each patch must appear at once to running threads
  // (the caller sees to it that it lies in one cache line). Returns how many were
  // written, in order: fewer than all when the system refuses.
  size_t Write(std::span<const CodePatch> patches, WritePath path, bool whole);

 private:
  size_t WriteThroughFile(std::span<const CodePatch> patches);
  size_t WriteByProtection(std::span<const CodePatch> patches);
  bool FileWorks();

  enum class Probe : uint8_t { kUntried, kWorks, kFails };
  Probe file_probe_ = Probe::kUntried;
};

// Every core that runs this process executes new code from here on. Cheap; done
// once per batch. Returns false where the kernel has no such membarrier (then a
// core may run old code until it next enters the kernel).
bool SynchronizeCores();

// Makes written code visible to instruction fetch; nothing on x86-64.
void FlushCode(uint64_t address, uint64_t size);

}  // namespace culprit::guard::runtime
