// SPDX-License-Identifier: Apache-2.0
#include "import/kernel_stacks.h"

#include <algorithm>
#include <array>

namespace culprit::import_ {
namespace {

using assemble::WakeContext;

struct NameRule {
  std::string_view text;
  bool prefix;
  uint8_t traits;
};

constexpr std::array<NameRule, 47> kRules = {{
    {"trace_event_raw_event_", true, kTracerFrame},
    {"trace_event_buffer_", true, kTracerFrame},
    {"__traceiter_", true, kTracerFrame},
    {"ftrace_trace_", true, kTracerFrame},
    {"__ftrace_trace_stack", false, kTracerFrame},
    {"perf_trace_", true, kTracerFrame},
    {"probe_sched_", true, kTracerFrame},
    {"stack_trace_save", false, kTracerFrame},
    {"do_IRQ", false, kInterruptEntry},
    {"__do_irq", false, kInterruptEntry},
    {"handle_domain_irq", false, kInterruptEntry},
    {"asm_common_interrupt", false, kInterruptEntry},
    {"common_interrupt", false, kInterruptEntry},
    {"ret_from_intr", false, kInterruptEntry},
    {"apic_timer_interrupt", false, kInterruptEntry},
    {"smp_apic_timer_interrupt", false, kInterruptEntry},
    {"reschedule_interrupt", false, kInterruptEntry},
    {"smp_reschedule_interrupt", false, kInterruptEntry},
    {"call_function_interrupt", false, kInterruptEntry},
    {"call_function_single_interrupt", false, kInterruptEntry},
    {"asm_sysvec_", true, kInterruptEntry},
    {"sysvec_", true, kInterruptEntry},
    {"irq_exit", true, kInterruptEntry},
    {"el0_irq", false, kInterruptEntry},
    {"el1_irq", false, kInterruptEntry},
    {"el0t_64_irq", true, kInterruptEntry},
    {"el1h_64_irq", true, kInterruptEntry},
    {"el0t_32_irq", true, kInterruptEntry},
    {"gic_handle_irq", false, kInterruptEntry},
    {"__irq_svc", false, kInterruptEntry},
    {"__irq_usr", false, kInterruptEntry},
    {"run_ksoftirqd", false, kSoftirqThread},
    {"net_rx_action", false, kNetworkFrame},
    {"net_tx_action", false, kNetworkFrame},
    {"process_backlog", false, kNetworkFrame},
    {"__napi_poll", true, kNetworkFrame},
    {"netif_receive_skb", true, kNetworkFrame},
    {"blk_mq_", true, kBlockFrame},
    {"blk_done_softirq", false, kBlockFrame},
    {"blk_complete_", true, kBlockFrame},
    {"bio_endio", false, kBlockFrame},
    {"scsi_", true, kBlockFrame},
    {"nvme_", true, kBlockFrame},
    {"hrtimer_", true, kTimerFrame},
    {"__hrtimer_", true, kTimerFrame},
    {"run_timer_softirq", true, kTimerFrame},
    {"call_timer_fn", true, kTimerFrame},
}};

// hrtimer_nanosleep is somebody who waits for a timer, not the timer.
constexpr std::array<std::string_view, 3> kNotTimers = {"hrtimer_nanosleep", "hrtimer_start_range",
                                                        "hrtimer_cancel"};

std::string_view DeviceOf(std::span<const uint8_t> traits) {
  uint8_t all = 0;
  for (const uint8_t each : traits) all |= each;
  if ((all & kBlockFrame) != 0) return "disk";
  if ((all & kNetworkFrame) != 0) return "net";
  if ((all & kTimerFrame) != 0) return "timer";
  return {};
}

}  // namespace

uint8_t TraitsOf(std::string_view function) {
  for (const std::string_view each : kNotTimers) {
    if (function.starts_with(each)) return 0;
  }
  uint8_t traits = 0;
  for (const NameRule& rule : kRules) {
    if (rule.prefix ? function.starts_with(rule.text) : function == rule.text)
      traits |= rule.traits;
  }
  return traits;
}

WakeVerdict JudgeWaking(uint64_t common_flags, std::span<const uint8_t> traits) {
  const bool hard = (common_flags & kHardInterruptFlags) != 0;
  const bool soft = (common_flags & kSoftInterruptFlag) != 0;
  if (!hard && !soft) return {};
  // Several entry frames stand together (asm_..., sysvec_..., irq_exit_rcu):
  // the outermost is where the interrupted code ends. A nested interrupt is
  // the device's all the same.
  size_t entry = traits.size();
  bool softirq_thread = false;
  for (size_t i = traits.size(); i-- > 0;) {
    if ((traits[i] & kInterruptEntry) != 0) entry = i;
    softirq_thread = softirq_thread || (traits[i] & kSoftirqThread) != 0;
  }
  const std::string_view device = DeviceOf(entry < traits.size() ? traits.subspan(entry) : traits);
  const bool own_network = device == "net" && entry == traits.size() && !softirq_thread;
  if (!hard && own_network) return {};
  return {.context = WakeContext::kInterrupt,
          .device = device,
          .first_frame = entry < traits.size() ? entry : 0};
}

trace::FrameId KernelStacks::FrameAt(uint64_t address) {
  const auto [it, is_new] = frames_.try_emplace(address);
  if (!is_new) return it->second;
  symbol::KernelSymbols::Found found;
  if (symbols_ != nullptr) found = symbols_->Lookup(address);
  const std::string_view module = found.module.empty() ? "[kernel]" : found.module;
  trace::Frame frame;
  frame.module = dictionary_.InternModule({.name = dictionary_.Intern(module)});
  frame.flags = trace::kKernelMode;
  if (found.name.empty()) {
    frame.offset = address;
  } else {
    frame.function = dictionary_.Intern(found.name);
  }
  it->second = dictionary_.InternFrame(frame);
  if (traits_.size() <= it->second.value) traits_.resize(it->second.value + 1);
  traits_[it->second.value] = TraitsOf(found.name);
  return it->second;
}

void KernelStacks::Frames(std::span<const uint64_t> addresses,
                          std::vector<trace::FrameId>& frames) {
  frames.clear();
  for (const uint64_t address : addresses) {
    const trace::FrameId frame = FrameAt(address);
    if (frames.empty() && (traits(frame) & kTracerFrame) != 0) continue;
    frames.push_back(frame);
  }
  std::reverse(frames.begin(), frames.end());
}

}  // namespace culprit::import_
