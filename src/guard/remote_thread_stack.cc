// SPDX-License-Identifier: Apache-2.0
#include "guard/remote_thread_stack.h"

#include "base/diagnostics.h"
#include "guard/proc_file.h"
#include "guard/session_folder.h"
#include "guard/thread_stop.h"
#include "symbol/debug_files.h"

namespace culprit::guard {
namespace {

using symbol::CallFrameMemory;
using symbol::CallFrameRegisters;
using symbol::CallFrames;
using symbol::CallFrameStep;

constexpr size_t kMaxRemoteFrames = 128;
constexpr size_t kStackBytes = 256 * 1024;
// Of a running thread: what it returns to in no time, and writes over.
constexpr size_t kRestlessBytes = 32 * 1024;
#if defined(__x86_64__)
constexpr unsigned kFramePointer = CallFrameRegisters::kX86Bp;
constexpr unsigned kStackPointer = CallFrameRegisters::kX86Sp;
constexpr uint64_t kAddressBits = ~uint64_t{0};
#else
constexpr unsigned kFramePointer = CallFrameRegisters::kArmFp;
constexpr unsigned kStackPointer = CallFrameRegisters::kArmSp;
// Signed return addresses carry their signature above the 48 bits of user space.
constexpr uint64_t kAddressBits = (uint64_t{1} << 48) - 1;
#endif

std::string StackBytes(int64_t pid, uint64_t from, size_t most) {
  std::string bytes(most, 0);
  bytes.resize(ReadRemoteMemory(pid, from, bytes.data(), bytes.size()));
  return bytes;
}

CallFrameRegisters SleepingRegisters(const SystemCallPlace& place) {
  CallFrameRegisters registers;
  registers.Set(kStackPointer, place.stack_pointer);
  registers.pc = place.program_counter;
  return registers;
}

struct ThreadMoment {
  CallFrameRegisters registers;
  std::string stack;  // from the stack pointer on
};

// The thread is stopped until its registers and the restless part of its stack are read.
Result<ThreadMoment> MomentOf(int64_t pid, int64_t tid) {
  CULPRIT_ASSIGN(const ThreadStop stop, ThreadStop::Stop(pid, tid));
  CULPRIT_ASSIGN(const MachineRegisters registers, stop.Registers());
  ThreadMoment held;
  held.registers = ToCallFrame(registers);
  held.stack = StackBytes(pid, held.registers.values[kStackPointer], kRestlessBytes);
  return held;
}

// By the record of a frame pointer: the caller's frame pointer, then the return
// address.
CallFrameStep FollowRecord(const CallFrameMemory& memory, CallFrameRegisters& registers) {
  if (!registers.Has(kFramePointer)) return CallFrameStep::kNoRow;
  const uint64_t record = registers.values[kFramePointer];
  const auto next = memory.Load(record);
  const auto pc = memory.Load(record + 8);
  if (!next || !pc || record < registers.values[kStackPointer]) return CallFrameStep::kNoRow;
  registers.known = 0;
  registers.Set(kFramePointer, *next);
  registers.Set(kStackPointer, record + 16);
  registers.pc = *pc;
  return CallFrameStep::kCaller;
}

}  // namespace

RemoteThreadStack::RemoteThreadStack() = default;
RemoteThreadStack::~RemoteThreadStack() = default;

Result<ThreadStack> RemoteThreadStack::Take(int64_t pid, int64_t tid, const ProcessImage& image) {
  CULPRIT_ASSIGN(const SystemCallPlace place, ReadSystemCallPlace(pid, tid));
  ThreadStack stack;
  stack.running = place.running;
  stack.system_call = place.number;
  if (!place.running) {
    const std::string bytes = StackBytes(pid, place.stack_pointer, kStackBytes);
    Walk(pid, SleepingRegisters(place), {place.stack_pointer, bytes}, image, stack);
    // Where a caller needs a register that only the thread has, look at it, if
    // it takes no harm.
    if (stack.complete || FailsWhenStopped(place.number)) return stack;
  }
  const size_t known = stack.addresses.size();
  const uint64_t begin_ns = GuardClockNs();
  CULPRIT_ASSIGN(ThreadMoment held, MomentOf(pid, tid));
  stack.held_ns = GuardClockNs() - begin_ns;
  const uint64_t stack_pointer = held.registers.values[kStackPointer];
  if (held.stack.size() == kRestlessBytes) {
    held.stack += StackBytes(pid, stack_pointer + kRestlessBytes, kStackBytes - kRestlessBytes);
  }
  ThreadStack second;
  second.running = stack.running;
  second.system_call = stack.system_call;
  second.held_ns = stack.held_ns;
  Walk(pid, held.registers, {stack_pointer, held.stack}, image, second);
  if (second.addresses.size() > known) return second;
  return stack;
}

CallFrames* RemoteThreadStack::FramesOf(const std::string& path) {
  const auto [it, is_new] = frames_.try_emplace(path);
  if (is_new) {
    Diagnostics ignored;  // who names the frames counts the same modules
    const symbol::SymbolizerOptions options;
    auto file = symbol::OpenModuleFile({path, ""}, options, ignored);
    if (file) it->second.emplace(std::move(*file));
  }
  return it->second ? &*it->second : nullptr;
}

CallFrameStep RemoteThreadStack::Step(bool is_return, const CallFrameMemory& memory,
                                      const ProcessImage& image, CallFrameRegisters& registers) {
  const MappedCode* code = image.Find(registers.pc - (is_return ? 1 : 0));
  if (code == nullptr) return CallFrameStep::kOutside;
  CallFrames* frames = code->path.empty() ? nullptr : FramesOf(code->path);
  if (frames != nullptr) {
    const uint64_t offset = registers.pc - code->begin + code->file_offset - (is_return ? 1 : 0);
    const CallFrameStep step = frames->Step(offset, memory, registers);
    if (step != CallFrameStep::kNoRow) return step;
  }
  return FollowRecord(memory, registers);
}

void RemoteThreadStack::Walk(int64_t pid, const CallFrameRegisters& registers,
                             const CallFrameMemory& memory, const ProcessImage& image,
                             ThreadStack& stack) {
  WalkBy(image, registers, memory, stack);
  if (!stack.strays) return;
  const auto now = ProcessImage::Read(pid);
  if (now.ok()) WalkBy(now.value(), registers, memory, stack);
}

void RemoteThreadStack::WalkBy(const ProcessImage& image, CallFrameRegisters registers,
                               const CallFrameMemory& memory, ThreadStack& stack) {
  stack.addresses.clear();
  stack.addresses.push_back(registers.pc);
  stack.strays = image.Find(registers.pc) == nullptr;
  bool is_return = false;
  while (!stack.strays && stack.addresses.size() < kMaxRemoteFrames) {
    const uint64_t before = registers.values[kStackPointer];
    const CallFrameStep step = Step(is_return, memory, image, registers);
    registers.pc &= kAddressBits;
    if (step == CallFrameStep::kOutermost) {
      stack.complete = true;
      return;
    }
    if (step != CallFrameStep::kCaller && step != CallFrameStep::kInterrupted) return;
    if (registers.pc == 0) {
      stack.complete = true;
      return;
    }
    stack.strays = image.Find(registers.pc) == nullptr;
    if (stack.strays) return;
    // Frames lie ever higher, except that a leaf of arm64 has none of its own.
    if (registers.values[kStackPointer] < before) return;
    if (registers.values[kStackPointer] == before && is_return) return;
    is_return = step == CallFrameStep::kCaller;
    stack.addresses.push_back(registers.pc);
  }
}

}  // namespace culprit::guard
