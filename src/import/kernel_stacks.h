// SPDX-License-Identifier: Apache-2.0
//
// KernelStacks: return addresses of the recorded kernel to frames and stacks,
// and what the frames say about a wake-up: whether an interrupt did it, and
// which kind of device. Leaf frames that belong to the tracer itself are left
// out. Names come from the trace's own kallsyms; without them a frame is its
// address. Each address is looked up once.
//
// JudgeWaking is the one rule about interrupts (the model's first trap): code
// in a hard interrupt is the device's; a softirq is the device's too, unless it
// is network code run inside the thread's own system call, which loopback does
// for nearly every message.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assemble/assembler.h"
#include "symbol/symbolizer.h"
#include "trace/dictionary.h"

namespace culprit::import_ {

// What a function's name tells about the code it is in.
enum FrameTrait : uint8_t {
  kTracerFrame = 1 << 0,
  kInterruptEntry = 1 << 1,
  kSoftirqThread = 1 << 2,
  kNetworkFrame = 1 << 3,
  kBlockFrame = 1 << 4,
  kTimerFrame = 1 << 5,
};
uint8_t TraitsOf(std::string_view function);

// common_flags of a tracepoint record.
inline constexpr uint64_t kHardInterruptFlags = 0x08 | 0x40;
inline constexpr uint64_t kSoftInterruptFlag = 0x10;

struct WakeVerdict {
  assemble::WakeContext context = assemble::WakeContext::kThread;
  std::string_view device = {};
  size_t first_frame = 0;  // frames before it belong to who was interrupted
};
// `traits` of the waker's frames, caller first; empty: no stack was recorded.
WakeVerdict JudgeWaking(uint64_t common_flags, std::span<const uint8_t> traits);

class KernelStacks {
 public:
  // Both outlive this object; `symbols` may be nullptr.
  KernelStacks(trace::Dictionary& dictionary, const symbol::KernelSymbols* symbols)
      : dictionary_(dictionary), symbols_(symbols) {}

  trace::FrameId FrameAt(uint64_t address);
  uint8_t traits(trace::FrameId frame) const { return traits_[frame.value]; }
  // Replaces `frames` by the stack's, caller first; `addresses` are leaf first.
  void Frames(std::span<const uint64_t> addresses, std::vector<trace::FrameId>& frames);

 private:
  trace::Dictionary& dictionary_;
  const symbol::KernelSymbols* symbols_;
  std::unordered_map<uint64_t, trace::FrameId> frames_;
  std::vector<uint8_t> traits_;  // by FrameId
};

}  // namespace culprit::import_
