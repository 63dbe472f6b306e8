// SPDX-License-Identifier: Apache-2.0
#include "guard/thread_stop.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

#include "guard/proc_file.h"
#include "guard/session_folder.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int64_t kStopPatienceMs = 500;
constexpr size_t kMaxVectorBytes = 64 * 1024;
#if defined(__x86_64__)
constexpr int kVectorSet = NT_X86_XSTATE;
constexpr uint64_t kSystemCallBytes = 2;
#else
constexpr int kVectorSet = NT_PRFPREG;
constexpr uint64_t kSystemCallBytes = 4;
#endif

Error PtraceError(const char* what, int64_t tid) {
  Error error = ErrnoError(what, "thread " + std::to_string(tid));
  if (errno == EPERM) {
    error.hint =
        "be root or the process's user; /proc/sys/kernel/yama/ptrace_scope must be 0 for the "
        "latter, and no debugger may hold it";
  }
  return error;
}

void* AsPointer(uint64_t value) {
  return reinterpret_cast<void*>(value);  // NOLINT(performance-no-int-to-ptr): ptrace wants it so
}

// Waits for the next event; the program's own sleep between two of them is not
// touched by a stop at their return.
bool IsEventWait(int64_t number) {
  static constexpr int64_t kCalls[] = {
#ifdef SYS_epoll_wait
      SYS_epoll_wait,      SYS_poll,     SYS_select,
#endif
      SYS_epoll_pwait,     SYS_ppoll,    SYS_pselect6,       SYS_accept,
      SYS_accept4,         SYS_recvfrom, SYS_recvmsg,        SYS_nanosleep,
      SYS_clock_nanosleep, SYS_wait4,    SYS_rt_sigtimedwait};
  return std::find(std::begin(kCalls), std::end(kCalls), number) != std::end(kCalls);
}

#if defined(__aarch64__)
// Whatever SA_RESTART says (signal(7)).
bool IsEndedBySignals(int64_t number) {
  static constexpr int64_t kCalls[] = {SYS_ppoll, SYS_pselect6, SYS_nanosleep, SYS_clock_nanosleep};
  return FailsWhenStopped(number) ||
         std::find(std::begin(kCalls), std::end(kCalls), number) != std::end(kCalls);
}
#endif

// It lives and is ours: the kernel names the tracer's process, not its thread.
bool IsTracedByUs(int64_t tid) {
  const std::string state = ProcStatusField(tid, "State");
  return !state.empty() && state[0] != 'Z' && state[0] != 'X' &&
         ProcStatusField(tid, "TracerPid") == std::to_string(getpid());
}

bool ParsePlace(const std::string& text, SystemCallPlace& place) {
  if (text.starts_with("running")) {
    place.running = true;
    return true;
  }
  std::istringstream words(text);
  std::string word;
  std::vector<uint64_t> values;
  if (!(words >> place.number)) return false;
  while (words >> word) values.push_back(std::strtoull(word.c_str(), nullptr, 16));
  if (values.size() < 2) return false;
  place.program_counter = values.back();
  place.stack_pointer = values[values.size() - 2];
  std::copy_n(values.begin(), std::min(values.size() - 2, place.arguments.size()),
              place.arguments.begin());
  return true;
}

}  // namespace

Result<SystemCallPlace> ReadSystemCallPlace(int64_t pid, int64_t tid) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/syscall";
  CULPRIT_ASSIGN(const std::string text, ReadProcFile(path));
  SystemCallPlace place;
  if (!ParsePlace(text, place)) return Error{.message = "cannot be understood", .file = path};
  return place;
}

bool FailsWhenStopped(int64_t system_call) {
  static constexpr int64_t kCalls[] = {
#ifdef SYS_epoll_wait
      SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
      SYS_epoll_pwait2,
#endif
      SYS_epoll_pwait,     SYS_semop,  SYS_semtimedop, SYS_io_getevents,
      SYS_rt_sigtimedwait, SYS_msgrcv, SYS_msgsnd};
  return std::find(std::begin(kCalls), std::end(kCalls), system_call) != std::end(kCalls);
}

Result<ThreadStop> ThreadStop::Stop(int64_t pid, int64_t tid) {
  const auto id = static_cast<pid_t>(tid);
  if (ptrace(PTRACE_SEIZE, id, nullptr, AsPointer(PTRACE_O_TRACESYSGOOD)) != 0) {
    return PtraceError("attach to", tid);
  }
  ThreadStop stop(pid, tid);
  if (ptrace(PTRACE_INTERRUPT, id, nullptr, nullptr) != 0) return PtraceError("stop", tid);
  CULPRIT_ASSIGN(stop.pending_signal_, stop.WaitForStop(kStopPatienceMs));
  return stop;
}

ThreadStop::ThreadStop(ThreadStop&& other) noexcept
    : pid_(other.pid_),
      tid_(std::exchange(other.tid_, 0)),
      stopped_(other.stopped_),
      pending_signal_(other.pending_signal_) {}

// A running thread cannot be let go, and one that we asked to stop will, however
// late it gets a CPU: left alone, it would then stand still for ever.
// Nothing is thrown but for want of memory, which ends the program.
// NOLINTNEXTLINE(bugprone-exception-escape)
ThreadStop::~ThreadStop() {
  if (tid_ == 0) return;
  const auto id = static_cast<pid_t>(tid_);
  const auto let_go = [&] {
    return ptrace(PTRACE_DETACH, id, nullptr, AsPointer(static_cast<uint64_t>(pending_signal_))) ==
           0;
  };
  if (stopped_ && let_go()) return;
  while (IsTracedByUs(tid_)) {
    ptrace(PTRACE_INTERRUPT, id, nullptr, nullptr);
    const Result<int> signal = WaitForStop(kStopPatienceMs);
    if (!signal.ok()) continue;
    const bool is_signal = signal.value() != 0 && (signal.value() & 0x7f) != SIGTRAP;
    if (is_signal) pending_signal_ = signal.value();
    if (let_go()) return;
  }
  // It ended. Who was traced is first its tracer's to reap, then its parent's; a
  // child of ours is reaped by who started it.
  const bool own_child = tid_ == pid_ && ProcStatusField(tid_, "PPid") == std::to_string(getpid());
  if (!own_child) waitpid(id, nullptr, __WALL | WNOHANG);
}

// The stop's signal, 0 for a stop that we asked for; SIGTRAP | 0x80 at system
// calls. Only stops are taken: a child of ours that ends is another's to reap.
Result<int> ThreadStop::WaitForStop(int64_t patience_ms) {
  const uint64_t deadline_ns = GuardClockNs() + static_cast<uint64_t>(patience_ms) * kNsPerMs;
  while (true) {
    siginfo_t info = {};
    const int failed = waitid(P_PID, static_cast<id_t>(tid_), &info, WSTOPPED | WNOHANG | __WALL);
    if (failed != 0 && errno != EINTR) return PtraceError("wait for", tid_);
    if (failed == 0 && info.si_pid != 0) {
      stopped_ = true;
      const bool asked = info.si_status >> 8 == PTRACE_EVENT_STOP;
      return asked ? 0 : info.si_status & 0xff;
    }
    if (GuardClockNs() > deadline_ns) {
      return Error{.message = "thread " + std::to_string(tid_) + " does not stop"};
    }
    usleep(20);
  }
}

Status ThreadStop::Resume(int request, int signal) {
  const auto id = static_cast<pid_t>(tid_);
  if (ptrace(static_cast<__ptrace_request>(request), id, nullptr,
             AsPointer(static_cast<uint64_t>(signal))) != 0) {
    return PtraceError("resume", tid_);
  }
  stopped_ = false;
  return {};
}

Result<MachineRegisters> ThreadStop::Registers() const {
  MachineRegisters registers = {};
  iovec vector = {.iov_base = &registers, .iov_len = sizeof(registers)};
  if (ptrace(PTRACE_GETREGSET, static_cast<pid_t>(tid_), AsPointer(NT_PRSTATUS), &vector) != 0) {
    return PtraceError("read the registers of", tid_);
  }
  return registers;
}

Status ThreadStop::SetRegisters(const MachineRegisters& registers) const {
  MachineRegisters copy = registers;
  iovec vector = {.iov_base = &copy, .iov_len = sizeof(copy)};
  if (ptrace(PTRACE_SETREGSET, static_cast<pid_t>(tid_), AsPointer(NT_PRSTATUS), &vector) != 0) {
    return PtraceError("set the registers of", tid_);
  }
  return {};
}

Result<std::string> ThreadStop::VectorRegisters() const {
  std::string bytes(kMaxVectorBytes, 0);
  iovec vector = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  if (ptrace(PTRACE_GETREGSET, static_cast<pid_t>(tid_), AsPointer(kVectorSet), &vector) != 0) {
    return PtraceError("read the registers of", tid_);
  }
  bytes.resize(vector.iov_len);
  return bytes;
}

Status ThreadStop::SetVectorRegisters(const std::string& registers) const {
  std::string copy = registers;
  iovec vector = {.iov_base = copy.data(), .iov_len = copy.size()};
  if (ptrace(PTRACE_SETREGSET, static_cast<pid_t>(tid_), AsPointer(kVectorSet), &vector) != 0) {
    return PtraceError("set the registers of", tid_);
  }
  return {};
}

Result<uint64_t> ThreadStop::SignalMask() const {
  uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, static_cast<pid_t>(tid_), AsPointer(sizeof(mask)), &mask) != 0) {
    return PtraceError("read the signal mask of", tid_);
  }
  return mask;
}

Status ThreadStop::SetSignalMask(uint64_t mask) const {
  if (ptrace(PTRACE_SETSIGMASK, static_cast<pid_t>(tid_), AsPointer(sizeof(mask)), &mask) != 0) {
    return PtraceError("set the signal mask of", tid_);
  }
  return {};
}

// The kernel restarts most calls by itself: on arm64 before the stop is seen, on
// x86-64 after it, by the error in rax.
MachineRegisters ThreadStop::Restarting(MachineRegisters registers,
                                        const SystemCallPlace& before) const {
  if (before.running || !FailsWhenStopped(before.number)) return registers;
#if defined(__x86_64__)
  constexpr uint64_t kRestart = static_cast<uint64_t>(-514);  // ERESTARTNOHAND
  if (registers.rip == before.program_counter && registers.rax == static_cast<uint64_t>(-EINTR)) {
    registers.rax = kRestart;
  }
#else
  if (registers.pc == before.program_counter &&
      registers.regs[0] == static_cast<uint64_t>(-EINTR)) {
    registers.pc -= kSystemCallBytes;
    registers.regs[0] = before.arguments[0];
  }
#endif
  return registers;
}

// x86-64 decides when the thread goes on, arm64 decided before it was stopped.
MachineRegisters ThreadStop::Interrupted(MachineRegisters registers,
                                         const SystemCallPlace& before) const {
#if defined(__aarch64__)
  const auto bits = [&](std::string_view field) {
    return std::strtoull(ProcStatusField(tid_, field).c_str(), nullptr, 16);
  };
  const uint64_t pending = (bits("SigPnd") | bits("ShdPnd")) & bits("SigCgt") & ~bits("SigBlk");
  const bool restarts = registers.pc + kSystemCallBytes == before.program_counter;
  if (pending != 0 && restarts && !before.running && IsEndedBySignals(before.number)) {
    registers.pc = before.program_counter;
    registers.regs[0] = static_cast<uint64_t>(-EINTR);
  }
#else
  static_cast<void>(before);
#endif
  return registers;
}

Status ThreadStop::RunUntilFault(int64_t patience_ms) {
  const uint64_t deadline_ns = GuardClockNs() + static_cast<uint64_t>(patience_ms) * kNsPerMs;
  int pass_on = 0;
  while (true) {
    CULPRIT_TRY(Resume(PTRACE_CONT, pass_on));
    const uint64_t now_ns = GuardClockNs();
    const Result<int> signal = WaitForStop(
        deadline_ns > now_ns ? static_cast<int64_t>((deadline_ns - now_ns) / kNsPerMs) : 0);
    if (!signal.ok()) {
      ptrace(PTRACE_INTERRUPT, static_cast<pid_t>(tid_), nullptr, nullptr);
      CULPRIT_TRY(WaitForStop(kStopPatienceMs));
      return signal.error();
    }
    if (signal.value() == SIGSEGV || signal.value() == SIGBUS || signal.value() == SIGILL) {
      return {};
    }
    pass_on = signal.value();
  }
}

Status ThreadStop::RunToSystemCallStop(uint64_t deadline_ns) {
  constexpr int kSystemCallStop = SIGTRAP | 0x80;
  int pass_on = pending_signal_;
  pending_signal_ = 0;
  while (GuardClockNs() < deadline_ns) {
    CULPRIT_TRY(Resume(PTRACE_SYSCALL, pass_on));
    const uint64_t now_ns = GuardClockNs();
    CULPRIT_ASSIGN(const int signal,
                   WaitForStop(now_ns < deadline_ns
                                   ? static_cast<int64_t>((deadline_ns - now_ns) / kNsPerMs) + 1
                                   : 1));
    if (signal == kSystemCallStop) return {};
    pass_on = signal;
  }
  return Error{.message = "thread " + std::to_string(tid_) + " makes no system call"};
}

Status ThreadStop::RunUntilEventWaitEnds(int64_t patience_ms) {
  const uint64_t deadline_ns = GuardClockNs() + static_cast<uint64_t>(patience_ms) * kNsPerMs;
  while (GuardClockNs() < deadline_ns) {
    CULPRIT_TRY(RunToSystemCallStop(deadline_ns));  // it enters
    CULPRIT_ASSIGN(const MachineRegisters registers, Registers());
#if defined(__x86_64__)
    const auto number = static_cast<int64_t>(registers.orig_rax);
#else
    const auto number = static_cast<int64_t>(registers.regs[8]);
#endif
    CULPRIT_TRY(RunToSystemCallStop(deadline_ns));  // it leaves
    if (!IsEventWait(number)) continue;
    // One instruction further: at the stop itself arm64 shows a false x7.
    CULPRIT_TRY(Resume(PTRACE_SINGLESTEP, 0));
    CULPRIT_ASSIGN(const int signal, WaitForStop(kStopPatienceMs));
    if (signal != 0 && signal != SIGTRAP) pending_signal_ = signal;
    return {};
  }
  return Error{.message = "thread " + std::to_string(tid_) + " waits for no event"};
}

symbol::CallFrameRegisters ToCallFrame(const MachineRegisters& registers) {
  symbol::CallFrameRegisters result;
#if defined(__x86_64__)
  const uint64_t values[] = {registers.rax, registers.rdx, registers.rcx, registers.rbx,
                             registers.rsi, registers.rdi, registers.rbp, registers.rsp,
                             registers.r8,  registers.r9,  registers.r10, registers.r11,
                             registers.r12, registers.r13, registers.r14, registers.r15};
  for (unsigned i = 0; i < std::size(values); ++i) result.Set(i, values[i]);
  result.pc = registers.rip;
#else
  for (unsigned i = 0; i < std::size(registers.regs); ++i) result.Set(i, registers.regs[i]);
  result.Set(symbol::CallFrameRegisters::kArmSp, registers.sp);
  result.pc = registers.pc;
#endif
  return result;
}

}  // namespace culprit::guard
