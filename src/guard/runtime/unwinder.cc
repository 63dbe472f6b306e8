// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unwinder.h"

#include <cstring>

#include "guard/runtime/code_address.h"
#include "guard/runtime/frame_rules.h"
#include "guard/runtime/known_modules.h"
#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint32_t kMaxOwnFrames = 16;

bool ReadStack(const AddressRange& stack, uint64_t address, uint64_t& value) {
  if (address % 8 != 0 || address < stack.begin || stack.end - stack.begin < 8 ||
      address > stack.end - 8) {
    return false;
  }
  memcpy(&value, BytesAt(address), sizeof(value));
  return true;
}

// Applies the rules of one frame. False: something lies outside of the stack.
bool Apply(const FrameRules& rules, const AddressRange& stack, Registers& registers,
           uint64_t& cfa) {
  cfa = registers.value[rules.cfa_register] + static_cast<uint64_t>(rules.cfa_offset);
  const Registers before = registers;
  for (uint32_t i = 0; i < Registers::kCount; ++i) {
    const FrameRules::Rule& rule = rules.rules[i];
    const uint64_t place = cfa + static_cast<uint64_t>(int64_t{rule.offset});
    switch (rule.kind) {
      case FrameRules::kSame:
        break;
      case FrameRules::kUndefined:
        if (i == rules.return_register) return false;
        break;
      case FrameRules::kAtOffset:
        if (!ReadStack(stack, place, registers.value[i])) return false;
        break;
      case FrameRules::kIsOffset:
        registers.value[i] = place;
        break;
      case FrameRules::kInRegister:
        if (rule.offset < 0 || rule.offset >= static_cast<int32_t>(Registers::kCount)) {
          return false;
        }
        registers.value[i] = before.value[rule.offset];
        break;
    }
  }
  registers.pc = WithoutAuthentication(registers.value[rules.return_register]);
  if (rules.rules[Registers::kStackPointer].kind == FrameRules::kSame) registers.sp() = cfa;
  // A frame that takes no room is a leaf's; none further out may take none.
  return registers.sp() >= before.sp() && registers.pc != 0;
}

// Frame pointer and return address lie side by side on both architectures.
bool StepByFramePointer(Registers& registers, const AddressRange& stack) {
  const uint64_t frame = registers.value[Registers::kFramePointer];
  uint64_t outer = 0;
  uint64_t pc = 0;
  if (frame < registers.sp() || !ReadStack(stack, frame, outer) ||
      !ReadStack(stack, frame + 8, pc)) {
    return false;
  }
  pc = WithoutAuthentication(pc);
  if (ModuleAt(pc) == nullptr) return false;
  registers.pc = pc;
  registers.sp() = frame + 16;
  registers.value[Registers::kFramePointer] = outer;
  return true;
}

// The frame that the kernel puts on the stack for a signal handler, which returns
// into two instructions that call rt_sigreturn. Not every system describes them
// (arm64), or does so without expressions (x86-64).
bool StepOverSignal(Registers& registers, const AddressRange& stack) {
#if defined(__aarch64__)
  static constexpr uint8_t kReturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
  constexpr uint64_t kRegisters = 128 + 176 + 8;  // behind siginfo, in ucontext
#else
  static constexpr uint8_t kReturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  constexpr uint64_t kRegisters = 40;
#endif
  if (memcmp(BytesAt(registers.pc), kReturn, sizeof(kReturn)) != 0) {
    return false;
  }
  const uint64_t saved = registers.sp() + kRegisters;
  Registers before = {};
  bool good = true;
  const auto read = [&](uint64_t index, uint64_t& to) {
    good = good && ReadStack(stack, saved + 8 * index, to);
  };
#if defined(__aarch64__)
  for (uint32_t i = 0; i < Registers::kCount; ++i) read(i, before.value[i]);
  read(32, before.pc);
#else
  constexpr uint8_t kPlace[Registers::kCount] = {13, 12, 14, 11, 9, 8, 10, 15, 0,
                                                 1,  2,  3,  4,  5, 6, 7,  16};
  for (uint32_t i = 0; i < Registers::kCount; ++i) read(kPlace[i], before.value[i]);
  read(16, before.pc);
#endif
  if (good) registers = before;
  return good;
}

// "begin-end perms ..." lines, read in pieces.
class MapsReader {
 public:
  explicit MapsReader(int fd) : fd_(fd) {}

  bool Next(AddressRange& range) {
    range = {};
    return Hex(range.begin) && Hex(range.end) && SkipLine();
  }

 private:
  int Byte() {
    if (at_ == size_) {
      const long got = RawSyscall(SYS_read, fd_, Word(bytes_), sizeof(bytes_));
      if (got <= 0) return -1;
      size_ = static_cast<size_t>(got);
      at_ = 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  bool Hex(uint64_t& value) {
    for (int c = Byte();; c = Byte()) {
      if (c >= '0' && c <= '9') {
        value = value << 4 | static_cast<uint64_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value << 4 | static_cast<uint64_t>(c - 'a' + 10);
      } else {
        return c >= 0;
      }
    }
  }
  bool SkipLine() {
    int c = Byte();
    while (c >= 0 && c != '\n') c = Byte();
    return c >= 0;
  }

  int fd_;
  char bytes_[512] = {};
  size_t at_ = 0;
  size_t size_ = 0;
};

}  // namespace

AddressRange StackAround(uint64_t sp) {
  const int fd = RawOpenAt(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  MapsReader maps(fd);
  AddressRange found;
  for (AddressRange range; maps.Next(range);) {
    if (!range.Contains(sp)) continue;
    found = range;
    break;
  }
  RawClose(fd);
  return found;
}

bool StepToCaller(Registers& registers, const AddressRange& stack, bool is_return,
                  FrameStep& step) {
  step = {};
  const uint64_t place = registers.pc - (is_return ? 1 : 0);
  const KnownModule* module = ModuleAt(place);
  if (module == nullptr) return false;
  FrameRules rules;
  if (FindFrameRules(module->loaded, place, rules) && !rules.signal_frame) {
    step.function = rules.function;
    return Apply(rules, stack, registers, step.cfa);
  }
  step.was_signal = is_return && module->loaded.IsExecutable(registers.pc + 8) &&
                    StepOverSignal(registers, stack);
  return step.was_signal || StepByFramePointer(registers, stack);
}

uint32_t Unwind(const Registers& start, const AddressRange& stack, bool first_is_return,
                StackFrame* frames, uint32_t max, uint64_t last_cfa) {
  Registers registers = start;
  bool is_return = first_is_return;
  uint32_t count = 0;
  while (count < max) {
    StackFrame& frame = frames[count];
    frame = {.pc = registers.pc, .cfa = 0, .function = 0};
    if (ModuleAt(registers.pc - (is_return ? 1 : 0)) == nullptr) break;
    ++count;
    FrameStep step;
    const bool goes_on = StepToCaller(registers, stack, is_return, step);
    frame.cfa = step.cfa;
    frame.function = step.function;
    if (!goes_on || step.cfa > last_cfa) break;
    is_return = !step.was_signal;
  }
  return count;
}

bool FindCaller(uint64_t cfa, const AddressRange& stack, Registers& registers) {
  TakeRegisters(registers);
  for (uint32_t i = 0; i < kMaxOwnFrames; ++i) {
    FrameStep step;
    if (!StepToCaller(registers, stack, i > 0, step)) return false;
    if (step.cfa == cfa) return true;
    if (step.cfa > cfa) return false;
  }
  return false;
}

bool FindHookedCaller(uint64_t entry_sp, uint64_t return_address, const AddressRange& stack,
                      Registers& registers) {
  TakeRegisters(registers);
  for (uint32_t i = 0; i < kMaxOwnFrames && ModuleAt(registers.pc) != nullptr; ++i) {
    FrameStep step;
    if (!StepToCaller(registers, stack, i > 0, step)) return false;
    if (step.cfa > entry_sp) return false;
  }
  if (ModuleAt(registers.pc) != nullptr) return false;
    // In the trampoline now, which belongs to no module.
#if defined(__aarch64__)
  // It keeps the frame pointer where x29 points.
  if (!ReadStack(stack, registers.value[Registers::kFramePointer],
                 registers.value[Registers::kFramePointer])) {
    return false;
  }
  registers.sp() = entry_sp;
#else
  registers.sp() = entry_sp + 8;
#endif
  registers.pc = return_address;
  return true;
}

}  // namespace culprit::guard::runtime
