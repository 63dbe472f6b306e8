// SPDX-License-Identifier: Apache-2.0
#include "record/unwind_walk.h"

#include <optional>

#include "record/bpf/records.h"

namespace culprit::record {
namespace {

constexpr uint64_t kArm64AddressMask = (uint64_t{1} << 48) - 1;

class UnwindWalk {
 public:
  UnwindWalk(const UnwindRegisters& registers, const UnwindSource& source)
      : source_(source), at_(registers) {}

  WalkedStack Run() {
    WalkedStack stack;
    do {
      stack.addresses.push_back(at_.program_counter);
    } while (stack.addresses.size() < kMaxStackFrames && Step());
    stack.complete = complete_;
    return stack;
  }

 private:
  std::optional<uint64_t> Word(uint64_t address) const {
    uint64_t word = 0;
    if (!source_.read(address, &word, sizeof(word))) return std::nullopt;
    return word;
  }
  static uint64_t Plus(uint64_t address, int32_t offset) {
    return address + static_cast<uint64_t>(int64_t{offset});
  }

  bool Step();
  bool StepByFramePointer();
  bool StepOutOfSignal();
  bool StepByRule(const UnwindRule& rule);
  std::optional<uint64_t> FrameAddress(const UnwindRule& rule) const;
  bool GoTo(uint64_t return_address, uint64_t stack_pointer, uint64_t frame_pointer);

  const UnwindSource& source_;
  UnwindRegisters at_;
  bool has_stack_pointer_ = true;  // else it is the least that it can be
  bool exact_ = true;
  bool complete_ = false;
};

bool UnwindWalk::GoTo(uint64_t return_address, uint64_t stack_pointer, uint64_t frame_pointer) {
  if (source_.machine == UnwindMachine::kArm64) return_address &= kArm64AddressMask;
  if (return_address == 0) {
    complete_ = true;
    return false;
  }
  at_ = {.program_counter = return_address,
         .stack_pointer = stack_pointer,
         .frame_pointer = frame_pointer};
  exact_ = false;
  return true;
}

bool UnwindWalk::Step() {
  const UnwindRule rule = source_.rule(at_.program_counter - (exact_ ? 0 : 1));
  if (rule.cfa == kCfaUnknown) return StepByFramePointer();
  if (rule.return_place == kPlaceEnd) {
    complete_ = true;
    return false;
  }
  const bool needs_stack_pointer = rule.cfa != kCfaFrame && rule.cfa != kCfaFrameDeref;
  if (needs_stack_pointer && !has_stack_pointer_) return StepByFramePointer();
  has_stack_pointer_ = true;
  return rule.cfa == kCfaSignal ? StepOutOfSignal() : StepByRule(rule);
}

bool UnwindWalk::StepByFramePointer() {
  const uint64_t frame = at_.frame_pointer;
  if (frame == 0) {
    complete_ = true;
    return false;
  }
  if (frame % 8 != 0 || frame < at_.stack_pointer) return false;
  const std::optional<uint64_t> caller = Word(frame);
  const std::optional<uint64_t> back = Word(frame + 8);
  // On arm64 the frame goes on above these two words.
  has_stack_pointer_ = source_.machine == UnwindMachine::kX86_64;
  return caller && back && GoTo(*back, frame + 16, *caller);
}

// As bpf/architecture.h has it.
bool UnwindWalk::StepOutOfSignal() {
  const bool arm64 = source_.machine == UnwindMachine::kArm64;
  const uint64_t base = at_.stack_pointer;
  const std::optional<uint64_t> frame = Word(base + (arm64 ? 544 : 120));
  const std::optional<uint64_t> link = arm64 ? Word(base + 552) : 0;
  const std::optional<uint64_t> stack = Word(base + (arm64 ? 560 : 160));
  const std::optional<uint64_t> counter = Word(base + (arm64 ? 568 : 168));
  if (!frame || !link || !stack || !counter || *counter == 0) return false;
  at_ = {.program_counter = *counter,
         .stack_pointer = *stack,
         .frame_pointer = *frame,
         .link_register = *link};
  exact_ = true;
  return true;
}

std::optional<uint64_t> UnwindWalk::FrameAddress(const UnwindRule& rule) const {
  const uint64_t by_stack = Plus(at_.stack_pointer, rule.cfa_offset);
  const uint64_t by_frame = Plus(at_.frame_pointer, rule.cfa_offset);
  std::optional<uint64_t> word;
  switch (rule.cfa) {
    case kCfaStack:
      return by_stack;
    case kCfaFrame:
      return by_frame;
    case kCfaPlt:
      return by_stack + ((at_.program_counter & 15) >= rule.extra ? 8 : 0);
    default:
      word = Word(rule.cfa == kCfaStackDeref ? by_stack : by_frame);
      if (word) *word += rule.extra;
      return word;
  }
}

bool UnwindWalk::StepByRule(const UnwindRule& rule) {
  const std::optional<uint64_t> cfa = FrameAddress(rule);
  if (!cfa || *cfa < at_.stack_pointer) return false;
  std::optional<uint64_t> frame = at_.frame_pointer;
  if (rule.frame_place == kPlaceCfa) frame = Word(Plus(*cfa, rule.frame_offset));
  if (rule.frame_place == kPlaceFrame) frame = Word(Plus(at_.frame_pointer, rule.frame_offset));
  if (rule.frame_place == kPlaceUnknown) frame = 1;
  std::optional<uint64_t> back;
  if (rule.return_place == kPlaceSame && at_.link_register != 0) back = at_.link_register;
  if (rule.return_place == kPlaceCfa) back = Word(Plus(*cfa, rule.return_offset));
  if (rule.return_place == kPlaceFrame) back = Word(Plus(at_.frame_pointer, rule.return_offset));
  return frame && back && GoTo(*back, *cfa, *frame);
}

}  // namespace

WalkedStack WalkStack(UnwindRegisters registers, const UnwindSource& source) {
  return UnwindWalk(registers, source).Run();
}

}  // namespace culprit::record
