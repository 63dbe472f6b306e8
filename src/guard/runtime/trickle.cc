// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/trickle.h"

#include <algorithm>

#include "guard/runtime/thread_times.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/unit_time.h"
#include "guard/runtime/violation_report.h"

namespace culprit::guard::runtime {
namespace {

// So many iterations come first: most outputs are done by then, and no time was read
// for them.
constexpr uint32_t kFirstIterations = 4;
// Fewer are no trickle, however long.
constexpr uint32_t kFewestIterations = 32;
constexpr uint64_t kAskAgainNs = 100'000;
// Looks are wanted after so much of what it may take: at its end nothing shows where it was.
constexpr uint64_t kShownAfter = 4;
// A thread that slept for more than a tenth of the time waited for its peer.
constexpr uint64_t kMostSleep = 10;

uint64_t ThresholdNs(const LoadedPlan& plan) {
  const wire::PlanHeader& header = plan.view.header();
  return std::max(header.unknown_ns, header.floor_ns);
}

UnitTime TimeUntil(ThreadState& state, const FollowedOutput& output, uint64_t now) {
  const uint64_t begin = output.begin.read_ticks;
  return TimeSince(state, output.begin, NsOfTicks(now > begin ? now - begin : 0));
}

bool NeverSlept(const UnitTime& time) {
  const uint64_t own_ns = time.Own();
  return own_ns - std::min(time.cpu_ns, own_ns) <= own_ns / kMostSleep;
}

// The oldest output that is shown is what looks are for.
void PublishTrickle(ThreadState& state) {
  uint64_t oldest = 0;
  for (uint32_t i = 0; i < state.followed; ++i) {
    const FollowedOutput& output = state.outputs[i];
    const uint64_t begin = output.begin.read_ticks;
    if (output.shown && (oldest == 0 || begin < oldest)) oldest = begin;
  }
  if (state.slot->trickle_ticks == oldest) return;
  const SlotChange change(*state.slot);
  state.slot->trickle_ticks = oldest;
}

void Begin(ThreadState& state, const LoadedPlan& plan, FollowedOutput& output) {
  ReadThreadTimes(state, output.begin);
  output.events = 0;
  output.limit_ticks = Saturated(output.begin.read_ticks, TicksOfNs(ThresholdNs(plan)));
}

// It goes on, with one more iteration, and may have become too slow by it.
void GoOn(ThreadState& state, const LoadedPlan& plan, FollowedOutput& output, uint64_t now) {
  if (output.iterations == kFirstIterations) return Begin(state, plan, output);
  if (output.iterations < kFewestIterations || output.told) return;
  output.shown =
      output.shown || now - output.begin.read_ticks >= TicksOfNs(ThresholdNs(plan) / kShownAfter);
  if (now < output.limit_ticks) return;
  const uint64_t own_ns = TimeUntil(state, output, now).Own();
  const uint64_t threshold_ns = ThresholdNs(plan);
  output.told = own_ns > threshold_ns;
  if (output.told) return;
  output.limit_ticks = now + TicksOfNs(std::max(threshold_ns - own_ns, kAskAgainNs));
}

void End(ThreadState& state, const LoadedPlan& plan, const FollowedOutput& output) {
  if (!output.told) return;
  const UnitTime time = TimeUntil(state, output, state.unread_from_ticks);
  const uint64_t threshold_ns = ThresholdNs(plan);
  if (time.Own() <= threshold_ns || !NeverSlept(time)) return;
  wire::Violation violation = {};
  violation.type = wire::kUnknown;
  violation.flags = wire::Violation::kTrickles | wire::Violation::kStackFromSite;
  violation.loop = state.slot->loop;
  violation.unit_kind = static_cast<uint32_t>(wire::UnitKind::kIteration);
  violation.begin_ns = output.begin.read_ns;
  violation.wall_ns = time.wall_ns;
  violation.run_delay_ns = time.run_delay_ns;
  violation.cpu_ns = time.cpu_ns;
  violation.threshold_ns = threshold_ns;
  violation.ready = static_cast<uint32_t>(std::min<uint64_t>(output.events, UINT32_MAX));
  violation.units = output.iterations - kFirstIterations;
  ReportViolation(state, plan, violation, {.entry_sp = state.head_sp});
}

FollowedOutput* FindOutput(ThreadState& state, uint64_t data) {
  FollowedOutput* end = state.outputs + state.followed;
  FollowedOutput* found = std::find_if(
      state.outputs, end, [&](const FollowedOutput& output) { return output.data == data; });
  return found == end ? nullptr : found;
}

}  // namespace

void FollowOutputs(ThreadState& state, const LoadedPlan& plan, const ReadyList& list,
                   uint32_t ready) {
  if (plan.mode != wire::Mode::kGuard || state.slot == nullptr) return;
  const uint64_t now = ReadTicks();
  FollowedOutput going[kFollowed];
  uint32_t count = 0;
  for (uint32_t i = 0; i < list.count; ++i) {
    if (!IsOnlyOutput(list.events[i])) continue;
    FollowedOutput& output = going[count++];
    FollowedOutput* known = FindOutput(state, list.events[i].data.u64);
    output = known != nullptr ? *known : FollowedOutput{.data = list.events[i].data.u64};
    if (known != nullptr) known->goes_on = true;
    ++output.iterations;
    output.events += ready;
    output.goes_on = false;
    GoOn(state, plan, output, now);
  }
  for (uint32_t i = 0; i < state.followed; ++i) {
    if (!state.outputs[i].goes_on) End(state, plan, state.outputs[i]);
  }
  for (uint32_t i = 0; i < count; ++i) state.outputs[i] = going[i];
  state.followed = count;
  state.odd.follows = count != 0;
  PublishTrickle(state);
}

void ForgetOutputs(ThreadState& state) {
  state.followed = 0;
  state.odd.follows = false;
  if (state.slot != nullptr) PublishTrickle(state);
}

}  // namespace culprit::guard::runtime
