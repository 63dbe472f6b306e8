// SPDX-License-Identifier: Apache-2.0
#include "guard/remote_call.h"

#include <signal.h>
#include <sys/mman.h>

#include "guard/proc_file.h"

namespace culprit::guard {
namespace {

constexpr uint64_t kScratchBytes = 1 << 20;
constexpr uint64_t kTextBytes = 64 * 1024;  // of the scratch, at its begin
constexpr uint64_t kRedZone = 256;
constexpr uint64_t kFailed = ~uint64_t{0};  // MAP_FAILED

// All but those that a fault raises: these must reach the tracer, not be forced
// upon the program with its handlers reset.
constexpr uint64_t SignalBit(int number) { return uint64_t{1} << (number - 1); }
constexpr uint64_t kCallMask =
    ~(SignalBit(SIGSEGV) | SignalBit(SIGBUS) | SignalBit(SIGILL) | SignalBit(SIGTRAP));

#if defined(__x86_64__)

uint64_t PlaceOf(const MachineRegisters& registers) { return registers.rip; }
uint64_t ResultOf(const MachineRegisters& registers) { return registers.rax; }
uint64_t StackOf(const MachineRegisters& registers) { return registers.rsp; }

// A return address of 0 makes the return a fault.
bool Prepare(int64_t pid, uint64_t function, uint64_t stack, const std::vector<uint64_t>& arguments,
             MachineRegisters& registers) {
  constexpr uint64_t kDirectionFlag = 1 << 10;
  uint64_t values[6] = {};
  std::copy(arguments.begin(), arguments.end(), values);
  registers.rdi = values[0];
  registers.rsi = values[1];
  registers.rdx = values[2];
  registers.rcx = values[3];
  registers.r8 = values[4];
  registers.r9 = values[5];
  registers.rax = 0;
  registers.orig_rax = static_cast<uint64_t>(-1);  // no system call to restart
  registers.eflags &= ~kDirectionFlag;
  registers.rip = function;
  registers.rsp = stack - 8;
  const uint64_t nowhere = 0;
  return WriteRemoteMemory(pid, registers.rsp, &nowhere, sizeof(nowhere));
}

#else

uint64_t PlaceOf(const MachineRegisters& registers) { return registers.pc; }
uint64_t ResultOf(const MachineRegisters& registers) { return registers.regs[0]; }
uint64_t StackOf(const MachineRegisters& registers) { return registers.sp; }

bool Prepare(int64_t /*pid*/, uint64_t function, uint64_t stack,
             const std::vector<uint64_t>& arguments, MachineRegisters& registers) {
  constexpr uint64_t kBranchType = 3 << 10;  // what a landing pad would check
  for (size_t i = 0; i < arguments.size(); ++i) registers.regs[i] = arguments[i];
  registers.regs[29] = 0;
  registers.regs[30] = 0;
  registers.pstate &= ~kBranchType;
  registers.pc = function;
  registers.sp = stack;
  return true;
}

#endif

}  // namespace

Result<RemoteCall> RemoteCall::Begin(int64_t pid, ThreadStop& stop, const SystemCallPlace& before,
                                     const RemoteMapping& mapping) {
  RemoteCall call(pid, stop, before, mapping);
  CULPRIT_TRY(call.Remember());
  const Result<uint64_t> scratch = call.Call(
      mapping.mmap,
      {0, kScratchBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, kFailed, 0});
  if (!scratch.ok() || scratch.value() == kFailed) {
    CULPRIT_TRY(call.Finish());
    if (!scratch.ok()) return scratch.error();
    return Error{.message = "the process has no memory for the guards"};
  }
  call.scratch_ = scratch.value();
  return call;
}

Status RemoteCall::Remember() {
  CULPRIT_ASSIGN(registers_, stop_->Registers());
  registers_ = stop_->Restarting(registers_, before_);
  CULPRIT_ASSIGN(vectors_, stop_->VectorRegisters());
  CULPRIT_ASSIGN(signal_mask_, stop_->SignalMask());
  return stop_->SetSignalMask(kCallMask | signal_mask_);
}

// The first call, mmap, needs hardly any stack and takes it from the thread.
uint64_t RemoteCall::StackTop() const {
  const uint64_t top = scratch_ != 0 ? scratch_ + kScratchBytes : StackOf(registers_) - kRedZone;
  return top & ~uint64_t{15};
}

Result<uint64_t> RemoteCall::Call(uint64_t function, const std::vector<uint64_t>& arguments,
                                  int64_t patience_ms) {
  CULPRIT_CHECK(arguments.size() <= 6);
  MachineRegisters registers = registers_;
  if (!Prepare(pid_, function, StackTop(), arguments, registers)) {
    return Error{.message = "cannot write to the process's stack"};
  }
  CULPRIT_TRY(stop_->SetRegisters(registers));
  CULPRIT_TRY(stop_->RunUntilFault(patience_ms));
  CULPRIT_ASSIGN(registers, stop_->Registers());
  if (PlaceOf(registers) != 0) {
    return Error{.message = "a call inside the process failed at an unexpected place"};
  }
  return ResultOf(registers);
}

Result<uint64_t> RemoteCall::PutText(const std::string& text) {
  const uint64_t address = scratch_ + scratch_used_;
  const size_t bytes = text.size() + 1;
  if (scratch_ == 0 || scratch_used_ + bytes > kTextBytes ||
      !WriteRemoteMemory(pid_, address, text.c_str(), bytes)) {
    return Error{.message = "cannot write to the process's memory"};
  }
  scratch_used_ += (bytes + 15) / 16 * 16;
  return address;
}

Status RemoteCall::Finish() {
  Status unmapped;
  if (scratch_ != 0) {
    // On the thread's own stack again: this one is going away.
    const uint64_t scratch = scratch_;
    scratch_ = 0;
    const Result<uint64_t> result = Call(mapping_.munmap, {scratch, kScratchBytes});
    if (!result.ok()) unmapped = result.error();
  }
  CULPRIT_TRY(stop_->SetVectorRegisters(vectors_));
  CULPRIT_TRY(stop_->SetSignalMask(signal_mask_));
  CULPRIT_TRY(stop_->SetRegisters(stop_->Interrupted(registers_, before_)));
  return unmapped;
}

}  // namespace culprit::guard
