// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/shared_area.h"

#include <algorithm>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/session_files.h"
#include "guard/runtime/thread_times.h"

namespace culprit::guard::runtime {
namespace {

// Allocates through the mapping, which asks for no right to open the file. Kernels before 5.14
// cannot, and emulators may say that they did.
bool Populate(void* memory, size_t bytes) {
  return RawSyscall(SYS_madvise, Word(memory), static_cast<long>(bytes), MADV_POPULATE_WRITE) == 0;
}

bool IsRoot() { return RawSyscall(SYS_geteuid) == 0; }

}  // namespace

bool SharedArea::Create(const char* kind, uint32_t pid, size_t bytes, size_t front) {
  const SharedMemory made = CreateShared(FileName(kind).Add(pid).text(), bytes, front);
  if (made.memory == nullptr) return false;
  memory_ = static_cast<uint8_t*>(made.memory);
  kind_ = kind;
  pid_ = pid;
  bytes_ = bytes;
  allocated_.store(made.allocated, std::memory_order_release);
  // A server that is root now may later be somebody who may not open the file.
  if (IsRoot() && !Populate(memory_, 1)) ReachAll();
  return true;
}

void SharedArea::Adopt(void* memory, size_t bytes) {
  memory_ = static_cast<uint8_t*>(memory);
  bytes_ = bytes;
  allocated_.store(bytes, std::memory_order_release);
}

void SharedArea::Unmap() {
  allocated_.store(0);
  RawUnmap(memory_, bytes_);
  memory_ = nullptr;
}

// Several threads may do so at once: to allocate what is there changes nothing.
bool SharedArea::Grow(size_t end) {
  if (end > bytes_ || AreSystemCallsSealed()) return false;
  const size_t before = allocated_.load(std::memory_order_acquire);
  const size_t wanted = std::min(bytes_, std::max(end, 2 * before));
  const Allocation made = AllocateShared(FileName(kind_).Add(pid_).text(), wanted);
  const bool there =
      made == Allocation::kNotOpened ? Populate(memory_, wanted) : made == Allocation::kDone;
  if (!there) return false;
  for (size_t seen = before; seen < wanted;) {
    if (allocated_.compare_exchange_weak(seen, wanted)) break;
  }
  return true;
}

}  // namespace culprit::guard::runtime
