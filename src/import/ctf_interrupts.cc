// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_interrupts.h"

#include "import/tracepoint_table.h"

namespace culprit::import_ {
namespace {

using assemble::WakeContext;

constexpr int64_t kNetTransmit = 2;
constexpr int64_t kNetReceive = 3;
constexpr int64_t kSoftirqs = 10;

bool IsNetwork(int64_t vector) { return vector == kNetTransmit || vector == kNetReceive; }

}  // namespace

void CtfInterrupts::Event(uint16_t cpu, CtfEventKind kind, std::string_view name, int64_t vector) {
  if (cpu == assemble::kNoCpu) return;
  if (cpu >= cpus_.size()) cpus_.resize(cpu + size_t{1});
  Cpu& state = cpus_[cpu];
  const uint32_t bit = vector >= 0 && vector < kSoftirqs ? uint32_t{1} << vector : 0;
  switch (kind) {
    case CtfEventKind::kIrqEntry:
    case CtfEventKind::kVectorEntry:
      ++state.handlers;
      state.handler = name == "local_timer" ? "timer" : name;
      break;
    case CtfEventKind::kIrqExit:
    case CtfEventKind::kVectorExit:
      if (state.handlers > 0) --state.handlers;
      break;
    case CtfEventKind::kTimerEntry:
      state.timer = true;
      break;
    case CtfEventKind::kTimerExit:
      state.timer = false;
      break;
    case CtfEventKind::kSoftirqRaise:
      if (state.handlers == 0 && !state.timer && state.softirq < 0) {
        state.raised_by_thread |= bit;
      } else {
        state.raised_by_thread &= ~bit;
      }
      break;
    case CtfEventKind::kSoftirqEntry:
      state.softirq = vector;
      state.own_softirq = (state.raised_by_thread & bit) != 0;
      state.raised_by_thread &= ~bit;
      break;
    case CtfEventKind::kSoftirqExit:
      state.softirq = -1;
      break;
    default:
      break;
  }
}

void CtfInterrupts::Switch(uint16_t cpu) {
  if (cpu >= cpus_.size()) return;
  Cpu& state = cpus_[cpu];
  state.handlers = 0;
  state.softirq = -1;
  state.timer = false;
}

CtfInterrupts::Verdict CtfInterrupts::Judge(uint16_t cpu, std::string_view thread_name) const {
  const WakeContext quiet = all_are_recorded_ ? WakeContext::kThread : WakeContext::kUnknown;
  if (cpu >= cpus_.size()) return {quiet};
  const Cpu& state = cpus_[cpu];
  if (state.timer) return {WakeContext::kInterrupt, "timer"};
  if (state.handlers > 0) return {WakeContext::kInterrupt, DeviceOfIrq(state.handler)};
  if (state.softirq < 0) return {quiet};
  const bool own =
      state.own_softirq && IsNetwork(state.softirq) && !thread_name.starts_with("ksoftirqd/");
  if (own) return {WakeContext::kThread};
  return {WakeContext::kInterrupt, DeviceOfSoftirq(state.softirq)};
}

}  // namespace culprit::import_
