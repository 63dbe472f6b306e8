// SPDX-License-Identifier: Apache-2.0
#include "trace/contents.h"

#include "base/text.h"

namespace culprit::trace {
namespace {

std::string ShareOf(uint64_t part, uint64_t whole) {
  return FormatShare(static_cast<int64_t>(part), static_cast<int64_t>(whole));
}

Capability WaitMining(const Contents& c) {
  const KindTotals& waits = c.of(EventKind::kWait);
  Capability result{.analysis = "waits: who delays whom"};
  if (waits.events == 0) {
    result.reason = "there are no waits: the recording has no context switches";
  } else if (c.waits_with_waker == 0) {
    result.reason = "no wait says who ended it: the recording has no wake-ups";
  } else if (waits.with_stack == 0) {
    result.reason = "no wait has a stack: only threads could be named";
  } else {
    result.possible = true;
    result.reason = ShareOf(waits.with_stack, waits.events) + " of waits have a stack, " +
                    ShareOf(c.waits_with_waker, waits.events) + " a waker";
  }
  return result;
}

Capability CpuMining(const Contents& c) {
  const KindTotals& running = c.of(EventKind::kRunning);
  Capability result{.analysis = "CPU: what runs too long"};
  if (running.events == 0) {
    result.reason = "nothing says what was running: there are neither samples nor switches";
  } else if (running.with_stack == 0) {
    result.reason = "no running event has a stack";
  } else {
    result.possible = true;
    result.reason = FormatCount(running.with_stack) + " sampled stacks";
  }
  return result;
}

Capability Contrast(const Contents& c, bool waits_possible) {
  Capability result{.analysis = "contrast: slow against fast"};
  if (!waits_possible) {
    result.reason = "it needs waits with wakers and stacks";
  } else if (c.instances < 2) {
    result.reason = "it needs instances of a scenario: there are " + std::to_string(c.instances);
  } else {
    result.possible = true;
    result.reason = FormatCount(c.instances) + " instances";
  }
  return result;
}

Capability Inference(const Contents& c) {
  const KindTotals& syscalls = c.of(EventKind::kSyscall);
  Capability result{.analysis = "inference from system calls"};
  if (syscalls.events == 0) {
    result.reason = "there are no system calls";
  } else {
    result.possible = true;
    result.reason = FormatCount(syscalls.events) + " system calls, " +
                    ShareOf(syscalls.with_stack, syscalls.events) + " with a stack";
  }
  return result;
}

}  // namespace

void Contents::Count(const Event& event) {
  KindTotals& totals = kinds[static_cast<size_t>(event.kind)];
  ++totals.events;
  totals.with_stack += event.stack.valid() ? 1 : 0;
  totals.dur_ns += event.dur_ns;
  if (event.kind == EventKind::kWait && event.peer.valid()) ++waits_with_waker;
}

void Contents::Add(const Contents& other) {
  for (size_t kind = 0; kind < kEventKinds; ++kind) {
    kinds[kind].events += other.kinds[kind].events;
    kinds[kind].with_stack += other.kinds[kind].with_stack;
    kinds[kind].dur_ns += other.kinds[kind].dur_ns;
  }
  waits_with_waker += other.waits_with_waker;
  instances += other.instances;
}

std::vector<Capability> Capabilities(const Contents& contents) {
  const Capability waits = WaitMining(contents);
  return {waits, CpuMining(contents), Contrast(contents, waits.possible), Inference(contents)};
}

}  // namespace culprit::trace
