// SPDX-License-Identifier: Apache-2.0
//
// SharedArea: memory that culprit reads through a file of the session (slots.PID,
// ring.PID). The file has its full size at once, but only its front is allocated:
// a server that makes a process for every connection does not take room for
// thousands of threads in each of them. What lies behind must be reached first, since
// to write to what is not allocated raises a signal when the disk is full.
//
// A zeroed one (memory that the kernel wiped in a child) is none yet. Create once;
// Reach from any thread, signal handlers included.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace culprit::guard::runtime {

class SharedArea {
 public:
  // The file is named KIND PID. False: no room for the front.
  bool Create(const char* kind, uint32_t pid, size_t bytes, size_t front);
  // Memory that is all there, and no file.
  void Adopt(void* memory, size_t bytes);
  void Unmap();

  // False: the bytes below `end` are not all there, and cannot be had.
  bool Reach(size_t end) { return end <= allocated_.load(std::memory_order_acquire) || Grow(end); }
  // As far as there is room; before no more system calls may be made.
  void ReachAll() { Reach(bytes_); }
  uint8_t* memory() const { return memory_; }

 private:
  bool Grow(size_t end);

  uint8_t* memory_;
  const char* kind_;
  uint32_t pid_;
  size_t bytes_;
  std::atomic<size_t> allocated_;
};

}  // namespace culprit::guard::runtime
