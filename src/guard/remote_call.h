// SPDX-License-Identifier: Apache-2.0
//
// RemoteCall: calls functions in a thread of another process that is held by
// ThreadStop, on a stack of their own, and leaves the thread as it was: general,
// vector and flag registers, signal mask, and the system call that it slept in.
// While a call runs, signals to the thread wait; the other threads go on.
//
// The thread should stand where it holds no lock of the C library: at a wait for
// events. A call that does not return within its time is an Error, and the thread
// is put back where it was: what the call held stays held.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "guard/thread_stop.h"

namespace culprit::guard {

// Addresses of the target's own functions.
struct RemoteMapping {
  uint64_t mmap = 0;
  uint64_t munmap = 0;
};

class RemoteCall {
 public:
  // `before`: where the thread slept before it was stopped. Its registers are
  // remembered now and given back by Finish().
  static Result<RemoteCall> Begin(int64_t pid, ThreadStop& stop, const SystemCallPlace& before,
                                  const RemoteMapping& mapping);

  // What the function returns; up to six integers or pointers.
  Result<uint64_t> Call(uint64_t function, const std::vector<uint64_t>& arguments,
                        int64_t patience_ms = 10'000);
  // The text in the target's memory, until Finish().
  Result<uint64_t> PutText(const std::string& text);
  Status Finish();

 private:
  RemoteCall(int64_t pid, ThreadStop& stop, const SystemCallPlace& before,
             const RemoteMapping& mapping)
      : pid_(pid), stop_(&stop), mapping_(mapping), before_(before) {}
  Status Remember();
  uint64_t StackTop() const;

  int64_t pid_;
  ThreadStop* stop_;
  RemoteMapping mapping_;
  SystemCallPlace before_;
  MachineRegisters registers_ = {};  // to go on with
  std::string vectors_;
  uint64_t signal_mask_ = 0;
  uint64_t scratch_ = 0;       // memory for stack and texts; 0: none yet
  uint64_t scratch_used_ = 0;  // by texts, from its begin
};

}  // namespace culprit::guard
