// SPDX-License-Identifier: Apache-2.0
//
// RemoteThreadStack: where a thread of another process is right now, seen from
// outside. A thread that sleeps in the kernel is not touched: its place comes from
// /proc, its memory by process_vm_readv. A running one is stopped for some 50 µs
// by ptrace to read its registers and what lies near its stack pointer. A thread in a system call
// that a stop would fail with EINTR (epoll_wait and its like) is never stopped.
//
// Callers are found by the unwind tables of the files on disk, by frame pointers
// where there are none: code that was made at run time, also since the image was read. The memory
// is another program's: nothing read from it is trusted. Tables are kept between calls. One thread
// at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/process_image.h"
#include "symbol/call_frames.h"

namespace culprit::guard {

struct ThreadStack {
  std::vector<uint64_t> addresses;  // innermost first: the place, then return addresses
  bool running = false;             // else it slept in a system call
  int64_t system_call = -1;         // where it slept; -1: in none
  bool complete = false;            // down to the thread's start
  uint64_t held_ns = 0;             // how long it was stopped for it, at most
  bool strays = false;              // it ends where no code is known to be
};

class RemoteThreadStack {
 public:
  RemoteThreadStack();
  ~RemoteThreadStack();

  Result<ThreadStack> Take(int64_t pid, int64_t tid, const ProcessImage& image);

 private:
  symbol::CallFrames* FramesOf(const std::string& path);
  // By the image; where that knows the code no more, by the process's image as it is now.
  void Walk(int64_t pid, const symbol::CallFrameRegisters& registers,
            const symbol::CallFrameMemory& memory, const ProcessImage& image, ThreadStack& stack);
  void WalkBy(const ProcessImage& image, symbol::CallFrameRegisters registers,
              const symbol::CallFrameMemory& memory, ThreadStack& stack);
  symbol::CallFrameStep Step(bool is_return, const symbol::CallFrameMemory& memory,
                             const ProcessImage& image, symbol::CallFrameRegisters& registers);

  std::map<std::string, std::optional<symbol::CallFrames>> frames_;  // by path
};

}  // namespace culprit::guard
