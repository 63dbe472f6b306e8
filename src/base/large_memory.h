// SPDX-License-Identifier: Apache-2.0
//
// LargeMemory: where tables that grow with a corpus live. LargeVector<T> is a
// std::vector whose large arrays (1 MB and more) are counted; those that do not fit
// the bound any more are put into nameless temporary files (spill_file.h) that are
// mapped into memory. What is there is the same bytes, so results cannot depend on
// it, and its pages are the kernel's to write out and take back when memory is
// short: a table larger than the machine's memory is slow, not fatal.
//
// The bound holds for the process, like memory itself; without one (the default)
// everything is on the heap. Disk space is reserved before it is used, so that a
// full disk cannot end the program: the array is then on the heap, and
// why_not_mapped() tells. All functions are safe from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace culprit {

class LargeMemory {
 public:
  static constexpr size_t kLargeBytes = size_t{1} << 20;

  // Of large arrays on the heap, together; 0: none. Arrays that are there stay.
  static void SetBound(uint64_t bytes);
  static uint64_t bound();

  static uint64_t heap_bytes();    // of large arrays
  static uint64_t mapped_bytes();  // of files
  static std::string why_not_mapped();

  // Lets go of the mapped pages this process holds if they are more than the bound;
  // they come back, from the kernel's cache or from disk, when they are touched. To be
  // called now and then while tables grow: a system call or two.
  static void KeepWithinBound();

  static void* Allocate(size_t bytes);
  static void Free(void* block, size_t bytes) noexcept;
};

template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class Other>
  LargeAllocator(const LargeAllocator<Other>&) {}  // NOLINT: as allocators are converted

  T* allocate(size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(LargeMemory::Allocate(count * sizeof(T)));
  }
  void deallocate(T* block, size_t count) noexcept { LargeMemory::Free(block, count * sizeof(T)); }

  bool operator==(const LargeAllocator&) const = default;
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace culprit
