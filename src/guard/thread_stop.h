// SPDX-License-Identifier: Apache-2.0
//
// ThreadStop: a thread of another process, held by ptrace as long as this object
// lives, without a signal that the program could see. A signal that comes
// meanwhile is passed on when the thread goes. The registers are those of the
// machine; a system call that the stop interrupted is entered again by the kernel
// or, where the kernel would return EINTR, by RestartSystemCall(). The caller must
// be the one thread that made the object: ptrace belongs to threads.
#pragma once

#include <sys/user.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "symbol/call_frames.h"

namespace culprit::guard {

#if defined(__aarch64__)
using MachineRegisters = user_regs_struct;  // regs[31], sp, pc, pstate
#elif defined(__x86_64__)
using MachineRegisters = user_regs_struct;
#else
#error "guards are for x86-64 and arm64"
#endif

// /proc/PID/task/TID/syscall: where a thread sleeps.
struct SystemCallPlace {
  bool running = false;  // it does not sleep
  int64_t number = -1;   // -1: sleeps outside of a system call (a page fault)
  std::array<uint64_t, 6> arguments = {};
  uint64_t stack_pointer = 0;
  uint64_t program_counter = 0;
};
Result<SystemCallPlace> ReadSystemCallPlace(int64_t pid, int64_t tid);
// Calls that return EINTR after a stop though no handler ran (signal(7)).
bool FailsWhenStopped(int64_t system_call);

class ThreadStop {
 public:
  static Result<ThreadStop> Stop(int64_t pid, int64_t tid);
  ThreadStop(ThreadStop&& other) noexcept;
  ThreadStop& operator=(ThreadStop&&) = delete;
  ~ThreadStop();

  Result<MachineRegisters> Registers() const;
  Status SetRegisters(const MachineRegisters& registers) const;
  // Floating point and vectors, as the kernel has them.
  Result<std::string> VectorRegisters() const;
  Status SetVectorRegisters(const std::string& registers) const;
  Result<uint64_t> SignalMask() const;
  Status SetSignalMask(uint64_t mask) const;

  // The registers with which the interrupted call is entered again. `before` is
  // where the thread slept before the stop.
  MachineRegisters Restarting(MachineRegisters registers, const SystemCallPlace& before) const;
  // The same where a signal with a handler came meanwhile: the call returns EINTR if
  // it is one that signals end.
  MachineRegisters Interrupted(MachineRegisters registers, const SystemCallPlace& before) const;
  // Lets it run until a fault; the fault does not reach the program. An Error if
  // there was none within `patience_ms`: the thread is stopped all the same.
  Status RunUntilFault(int64_t patience_ms);
  // Lets it run until it has come back from one of its waits for events.
  Status RunUntilEventWaitEnds(int64_t patience_ms);

 private:
  ThreadStop(int64_t pid, int64_t tid) : pid_(pid), tid_(tid) {}
  Result<int> WaitForStop(int64_t patience_ms);
  Status Resume(int request, int signal);
  Status RunToSystemCallStop(uint64_t deadline_ns);

  int64_t pid_;
  int64_t tid_;
  bool stopped_ = false;
  int pending_signal_ = 0;
};

symbol::CallFrameRegisters ToCallFrame(const MachineRegisters& registers);

}  // namespace culprit::guard
