// SPDX-License-Identifier: Apache-2.0
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

#include <algorithm>

#include "guard/runtime/detours.h"
#include "guard/runtime/process.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_tracker.h"
#include "guard/runtime/wait_frame.h"

namespace culprit::guard::runtime {
namespace {

uint64_t g_fork;
uint64_t g_underscore_fork;
uint64_t g_execve;
uint64_t g_exit;
uint64_t g_prctl;
uint64_t g_pthread_create;
uint64_t g_syscall;

#define CULPRIT_LOG_PLACE() \
  LogCallPlace(CULPRIT_ENTRY_SP(), reinterpret_cast<uint64_t>(__builtin_return_address(0)))

// What is known of the thread's stack, which is the child's too.
AddressRange StackBeforeFork() {
  const ThreadState* state = KnownThread();
  return state == nullptr ? AddressRange{} : state->stack;
}

void AfterFork(int child, const AddressRange& stack) {
  if (child == 0) {
    ForgetThreadAfterFork();
    WipeAfterFork();
    ExpectStack(stack);
    return;
  }
  const LoadedPlan* plan = CurrentPlan();
  ThreadState* state = KnownThread();
  if (child < 0 || plan == nullptr || plan->mode != wire::Mode::kTrain || state == nullptr) return;
  const uint64_t words[] = {LogWord(wire::LogKind::kFork, 0, static_cast<uint64_t>(child)),
                            MonotonicNs()};
  AppendLog(*state, words, 2);
}

// fork() calls _Fork() where there is one.
int ForkDetour() {
  CULPRIT_LOG_PLACE();
  LookBeforeProcessesOrThreads();
  const AddressRange stack = StackBeforeFork();
  const int child = OriginalAs<int (*)()>(g_fork)();
  if (g_underscore_fork == 0) AfterFork(child, stack);
  return child;
}

int UnderscoreForkDetour() {
  const AddressRange stack = StackBeforeFork();
  const int child = OriginalAs<int (*)()>(g_underscore_fork)();
  AfterFork(child, stack);
  return child;
}

int PthreadCreateDetour(void* thread, const void* attributes, void* function, void* argument) {
  CULPRIT_LOG_PLACE();
  if (__libc_single_threaded != 0) LookBeforeProcessesOrThreads();
  using Create = int (*)(void*, const void*, void*, void*);
  return OriginalAs<Create>(g_pthread_create)(thread, attributes, function, argument);
}

// What is in the thread's buffer would be lost with the process's memory. In a
// vforked child it is the parent's buffer, and the parent sleeps.
void WriteOutThisThread() {
  ThreadState* state = KnownThread();
  if (state != nullptr && state->saw_wait) FlushLog(*state);
}

int ExecDetour(const char* path, char* const* arguments, char* const* environment) {
  CULPRIT_LOG_PLACE();
  WriteOutThisThread();
  if (__libc_single_threaded != 0 && !AreSystemCallsSealed()) RemoveFilesOfLauncher();
  using Exec = int (*)(const char*, char* const*, char* const*);
  return OriginalAs<Exec>(g_execve)(path, arguments, environment);
}

void ExitDetour(int code) {
  CULPRIT_LOG_PLACE();
  if (IsTraining() && !AreSystemCallsSealed()) EndAllLogs();
  OriginalAs<void (*)(int)>(g_exit)(code);
}

long PrctlDetour(long option, long a, long b, long c, long d) {
  CULPRIT_LOG_PLACE();
  if (static_cast<int>(option) == PR_SET_SECCOMP) SealSession();
  return OriginalAs<long (*)(long, long, long, long, long)>(g_prctl)(option, a, b, c, d);
}

// Libraries also ask what is supported, with no filter at all.
bool SetsSeccomp(long operation, long filter) {
  return operation == SECCOMP_SET_MODE_STRICT ||
         (operation == SECCOMP_SET_MODE_FILTER && filter != 0);
}

constexpr WaitSpec kFutexWait = {"futex", wire::WaitCall::kFutex, WaitShape::kCondition};
constexpr WaitSpec kFutexTimedWait = {"futex", wire::WaitCall::kFutex, WaitShape::kConditionTimed};

constexpr WaitSpec kEventsWait = {"io_getevents", wire::WaitCall::kAio, WaitShape::kTimespec4};

bool IsFutexWait(long number, long operation) {
  const long command = operation & FUTEX_CMD_MASK;
  return number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
}

void LogFutexWake(long number, long address, long operation) {
  const long command = operation & FUTEX_CMD_MASK;
  if (number != SYS_futex || (command != FUTEX_WAKE && command != FUTEX_WAKE_BITSET)) return;
  ThreadState* state = IsTraining() && !LogsTimes() ? ThisThread() : nullptr;
  if (state == nullptr || state->odd.in_runtime) return;
  const uint64_t words[] = {
      LogWord(wire::LogKind::kWake, static_cast<uint64_t>(wire::WakeCall::kFutex), 0),
      MonotonicNs(), static_cast<uint64_t>(address)};
  AppendLog(*state, words, 3);
}

// Programs make their futex and io_getevents calls, and enter seccomp, through
// syscall().
long SyscallDetour(long number, long a, long b, long c, long d, long e, long f) {
  using Syscall = long (*)(long, long, long, long, long, long, long);
  const auto original = OriginalAs<Syscall>(g_syscall);
  CULPRIT_LOG_PLACE();
  if (number == SYS_seccomp && SetsSeccomp(a, c)) SealSession();
  const bool of_events = number == SYS_io_getevents;
  if (number != SYS_futex && !of_events) return original(number, a, b, c, d, e, f);
  if (!of_events && !IsFutexWait(number, b)) {
    LogFutexWake(number, a, b);
    return original(number, a, b, c, d, e, f);
  }
  const CallArguments arguments = {{a, b, c, d, e, f}};
  const WaitSpec& of_futex = d == 0 ? kFutexWait : kFutexTimedWait;
  const WaitSpec& spec = of_events ? kEventsWait : of_futex;
  WaitFrame frame;
  EnterWait(frame, spec, arguments,
            {CULPRIT_ENTRY_SP(), reinterpret_cast<uint64_t>(__builtin_return_address(0))});
  const long result = original(number, a, b, c, d, e, f);
  LeaveWait(frame, spec, arguments, result);
  return result;
}

constexpr size_t kProcessCallCount = 7;
DetouredCall g_process_calls[kProcessCallCount];

}  // namespace

std::span<const DetouredCall> ProcessCalls() {
  constexpr uint32_t kAlways = DetouredCall::kAlways;
  constexpr uint32_t kTraining = DetouredCall::kTrainingOnly;
  const DetouredCall calls[kProcessCallCount] = {
      {"_Fork", CodeAddress(&UnderscoreForkDetour), &g_underscore_fork, kAlways},
      {"fork", CodeAddress(&ForkDetour), &g_fork, kAlways},
      {"execve", CodeAddress(&ExecDetour), &g_execve, kTraining},
      {"_exit", CodeAddress(&ExitDetour), &g_exit, kTraining},
      {"pthread_create", CodeAddress(&PthreadCreateDetour), &g_pthread_create, kAlways},
      {"prctl", CodeAddress(&PrctlDetour), &g_prctl, kAlways},
      {"syscall", CodeAddress(&SyscallDetour), &g_syscall, kAlways},
  };
  std::copy(std::begin(calls), std::end(calls), g_process_calls);
  return g_process_calls;
}

}  // namespace culprit::guard::runtime
