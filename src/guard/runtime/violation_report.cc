// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/violation_report.h"

#include <algorithm>

#include "guard/runtime/process.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unwinder.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kNsASecond = 1'000'000'000;
constexpr uint64_t kBeatNs = 5 * kNsASecond;

const wire::Control* g_control = nullptr;

// A token bucket in one word: the time up to which tokens are spent. It never
// lags more than a second behind, which is the burst.
bool TakeToken(std::atomic<uint64_t>& spent_ns, uint32_t a_second, uint64_t now_ns) {
  if (a_second == 0) return false;
  const uint64_t cost_ns = kNsASecond / a_second;
  uint64_t spent = spent_ns.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t from = std::max(spent, now_ns - kNsASecond);
    if (from + cost_ns > now_ns) return false;
    if (spent_ns.compare_exchange_weak(spent, from + cost_ns)) return true;
  }
}

uint32_t CopyStack(const ReportPlace& place, const AddressRange& stack,
                   uint64_t (&to)[wire::kMaxFrames]) {
  uint32_t count = 0;
  Registers registers = {};
  bool found = false;
  if (place.return_address != 0) {
    if (place.entry != 0) to[count++] = place.entry;
    found = FindHookedCaller(place.entry_sp, place.return_address, stack, registers);
    if (!found) to[count++] = place.return_address;
  } else {
#if defined(__aarch64__)
    found = FindCaller(place.entry_sp, stack, registers);
#else
    found = FindCaller(place.entry_sp + 8, stack, registers);
#endif
  }
  if (!found) return count;
  StackFrame frames[wire::kMaxFrames];
  const uint32_t got = Unwind(registers, stack, true, frames, wire::kMaxFrames - count);
  for (uint32_t i = 0; i < got; ++i) to[count++] = frames[i].pc;
  return count;
}

bool MayReport(const LoadedPlan& plan) {
  const uint64_t now_ns = MonotonicNs();
  return DoesAnybodyListen(now_ns) &&
         TakeToken(ThisProcess().report_credit_ns, plan.view.header().max_reports_a_second, now_ns);
}

bool WriteViolation(ThreadState& state, wire::Violation& violation) {
  Process& process = ThisProcess();
  violation.tid = state.tid.load(std::memory_order_relaxed);
  violation.told_ns = MonotonicNs();
  const bool written = WriteToRing([&](wire::Cell& cell) {
    cell.kind = static_cast<uint32_t>(wire::RecordKind::kViolation);
    cell.count = 0;
    cell.violation = violation;
  });
  if (!written) process.header->lost_records.fetch_add(1, std::memory_order_relaxed);
  return written;
}

}  // namespace

const AddressRange& StackOf(ThreadState& state, uint64_t sp) {
  if (!state.stack.Contains(sp) && !AreSystemCallsSealed()) state.stack = StackAround(sp);
  return state.stack;
}

void ListenTo(const wire::Control* control) { g_control = control; }

bool DoesAnybodyListen(uint64_t now_ns) {
  const uint64_t beat = g_control->collector_beat_ns.load(std::memory_order_relaxed);
  return now_ns < beat + kBeatNs;
}

void ReportViolation(ThreadState& state, const LoadedPlan& plan, wire::Violation& violation,
                     const ReportPlace& place) {
  wire::SlotsHeader& header = *ThisProcess().header;
  header.violations.fetch_add(1, std::memory_order_relaxed);
  if (!MayReport(plan)) {
    header.suppressed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  violation.frames = CopyStack(place, StackOf(state, place.entry_sp), violation.frame);
  WriteViolation(state, violation);
}

bool ReportRunning(ThreadState& state, const LoadedPlan& plan, wire::Violation& violation,
                   const ReportPlace& place) {
  if (!MayReport(plan)) return false;
  violation.flags |= wire::Violation::kStillRunning;
  violation.frames = CopyStack(place, StackOf(state, place.entry_sp), violation.frame);
  return WriteViolation(state, violation);
}

// What may be told is bounded by what was told of the unit before, whose stack is
// the better one; but that record may have been lost.
void ReportEndOfRunning(ThreadState& state, wire::Violation& violation, const ReportPlace& place,
                        bool slow) {
  if (slow) ThisProcess().header->violations.fetch_add(1, std::memory_order_relaxed);
  violation.flags |= wire::Violation::kEndOfRunning | wire::Violation::kStackFromSite;
  violation.frames = CopyStack(place, StackOf(state, place.entry_sp), violation.frame);
  WriteViolation(state, violation);
}

}  // namespace culprit::guard::runtime
