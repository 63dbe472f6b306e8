// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_tracker.h"

#include <algorithm>

#include "guard/runtime/process.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/type_inference.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

using wire::UnitKind;

constexpr uint64_t kGuardTimesNs = 1'000'000;    // thread times are at most so old...
constexpr uint64_t kCalibrateTimesNs = 100'000;  // ...and so while calibrating
constexpr uint64_t kNever = UINT64_MAX;

// Keeps culprit from reading a slot that is being changed.
class SlotChange {
 public:
  explicit SlotChange(wire::UnitSlot& slot) : slot_(slot) { Step(); }
  ~SlotChange() { Step(); }

 private:
  void Step() {
    std::atomic_thread_fence(std::memory_order_release);
    slot_.sequence.store(slot_.sequence.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  wire::UnitSlot& slot_;
};

UnitKind KindOf(const wire::UnitSlot& slot) { return static_cast<UnitKind>(slot.kind); }

uint64_t Saturated(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

void RefreshTimes(ThreadState& state, const LoadedPlan& plan, uint64_t now) {
  const uint64_t oldest =
      TicksOfNs(plan.mode == wire::Mode::kCalibrate ? kCalibrateTimesNs : kGuardTimesNs);
  if (state.at_begin.read_ticks != 0 && now - state.at_begin.read_ticks < oldest) return;
  ReadThreadTimes(state, state.at_begin);
  state.slot->delay_ns = state.at_begin.run_delay_ns;
  state.slot->delay_ticks = state.at_begin.read_ticks;
  PublishUnits(state);
}

// What must have passed before anything of this unit or iteration can be too slow.
uint64_t DeadlineOf(const LoadedPlan& plan, const wire::UnitSlot& slot, uint64_t begin) {
  uint64_t allowed = plan.loops[slot.loop].smallest_ticks[slot.kind];
  uint64_t deadline = Saturated(begin, allowed);
  if (plan.iteration_ticks != 0) {
    deadline = std::min(
        deadline, Saturated(slot.iteration_ticks, plan.iteration_ticks * std::max(slot.ready, 1u)));
  }
  return deadline;
}

void SetContexts(wire::UnitSlot& slot, const uint64_t* contexts) {
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    slot.contexts[i] = contexts == nullptr ? 0 : contexts[i];
  }
}

void BeginUnit(ThreadState& state, const LoadedPlan& plan, UnitKind kind, const uint64_t* contexts,
               uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  slot.kind = static_cast<uint32_t>(kind);
  slot.begin_ticks = now;
  SetContexts(slot, contexts);
  slot.deadline_ticks = DeadlineOf(plan, slot, now);
  state.own_ticks = 0;
  state.reported = false;
  if (plan.view.header().hit_counting != 0) {
    std::fill(std::begin(state.context_hits), std::end(state.context_hits), 0);
  }
}

// How a unit's time divides, as far as it was looked at.
struct UnitTime {
  uint64_t wall_ns = 0;
  uint64_t run_delay_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t Own() const { return wall_ns - run_delay_ns; }
};

UnitTime TimeSince(ThreadState& state, const ThreadTimes& begin, uint64_t wall_ns) {
  ThreadTimes now;
  ReadThreadTimes(state, now);
  UnitTime time;
  time.wall_ns = wall_ns;
  time.run_delay_ns = std::min(wall_ns, now.run_delay_ns - begin.run_delay_ns);
  time.cpu_ns = std::min(wall_ns, now.cpu_ns - begin.cpu_ns);
  return time;
}

void FillViolation(const wire::UnitSlot& slot, const TypeVerdict& verdict, const UnitTime& time,
                   uint64_t threshold_ns, wire::Violation& violation) {
  violation.type = verdict.type;
  if (verdict.type == wire::kUnknown) violation.flags |= wire::Violation::kUnknownType;
  violation.loop = slot.loop;
  violation.unit_kind = slot.kind;
  violation.similarity_ppm = verdict.similarity_ppm;
  violation.wall_ns = time.wall_ns;
  violation.run_delay_ns = time.run_delay_ns;
  violation.cpu_ns = time.cpu_ns;
  violation.threshold_ns = threshold_ns;
  violation.ready = slot.ready;
  std::copy(slot.contexts, slot.contexts + wire::kContextWords, violation.contexts);
}

UnitIdentity IdentityOf(const wire::UnitSlot& slot) {
  return {.loop = slot.loop, .kind = slot.kind, .contexts = slot.contexts};
}

bool WantsSample(ThreadState& state, const LoadedPlan& plan) {
  if (plan.mode == wire::Mode::kCalibrate) return true;
  const uint32_t every = plan.view.header().sample_every;
  if (every == 0 || ++state.units_to_sample < every) return false;
  state.units_to_sample = 0;
  return true;
}

void MakeSample(ThreadState& state, uint32_t type, uint32_t similarity_ppm, const UnitTime& time) {
  const uint64_t now_ns = MonotonicNs();
  wire::Sample sample = {};
  sample.type = type;
  sample.tid = state.tid.load(std::memory_order_relaxed);
  sample.begin_ns = now_ns - time.wall_ns;
  sample.wall_ns = time.wall_ns;
  sample.run_delay_ns = static_cast<uint32_t>(std::min<uint64_t>(time.run_delay_ns, UINT32_MAX));
  sample.similarity_ppm = similarity_ppm;
  if (DoesAnybodyListen(now_ns)) AddSample(state, sample);
}

// A unit that ends at a boundary was not in the function that begins the next.
ReportPlace AtEnd(ReportPlace place) {
  place.entry = 0;
  return place;
}

// `ticks` is the unit's time; a tail's per ready event.
void EndUnit(ThreadState& state, const LoadedPlan& plan, uint64_t ticks, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  ++slot.units;
  ++state.unpublished_units;
  const bool suspicious = ticks >= plan.loops[slot.loop].smallest_ticks[slot.kind];
  const bool sampled = WantsSample(state, plan);
  if (!suspicious && !sampled) return;
  const TypeVerdict verdict = InferTypeCached(plan, IdentityOf(slot), state);
  const uint64_t wall_ns = NsOfTicks(ticks);
  UnitTime time = {.wall_ns = wall_ns};
  // A unit that was made to wait for a CPU took at least a time slice of another.
  constexpr uint64_t kShortNs = 20'000;
  if (suspicious || wall_ns > kShortNs) time = TimeSince(state, state.at_begin, wall_ns);
  if (sampled) MakeSample(state, verdict.type, verdict.similarity_ppm, time);
  const uint64_t threshold_ns = ThresholdNs(plan.view, verdict);
  if (state.reported || time.Own() <= threshold_ns) return;
  state.reported = true;
  state.iteration_reported = true;
  wire::Violation violation = {};
  FillViolation(slot, verdict, time, threshold_ns, violation);
  violation.flags |= wire::Violation::kStackFromSite;
  ReportViolation(state, plan, violation, AtEnd(place));
}

// Whatever runs now ends here: its time, without what the runtime took of it.
uint64_t ElapsedTicks(const ThreadState& state, uint64_t now) {
  const uint64_t since = now - state.slot->begin_ticks;
  return since > state.own_ticks ? since - state.own_ticks : 0;
}

// Ends the running part; a part of the tail is only added up.
void EndPart(ThreadState& state, const LoadedPlan& plan, uint64_t now, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  const uint64_t elapsed = ElapsedTicks(state, now);
  state.iteration_own_ticks += state.own_ticks;
  if (KindOf(slot) != UnitKind::kTail) return EndUnit(state, plan, elapsed, place);
  state.tail_ticks += elapsed;
  std::copy(slot.contexts, slot.contexts + wire::kContextWords, state.tail_contexts);
}

void EndTail(ThreadState& state, const LoadedPlan& plan, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  slot.kind = static_cast<uint32_t>(UnitKind::kTail);
  SetContexts(slot, state.tail_contexts);
  state.reported = false;
  EndUnit(state, plan, state.tail_ticks / std::max(slot.ready, 1u), place);
}

// All of the iteration, per ready event: what no single unit shows.
void CheckIteration(ThreadState& state, const LoadedPlan& plan, uint64_t now,
                    const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  const bool cut = slot.done != 0;
  const uint64_t since = now - slot.iteration_ticks;
  const uint64_t own = std::min(since, state.iteration_own_ticks);
  const uint64_t ticks = (since - own) / std::max(slot.ready, 1u);
  const bool sampled = cut && plan.mode == wire::Mode::kCalibrate;
  const bool suspicious = plan.iteration_ticks != 0 && ticks > plan.iteration_ticks &&
                          !state.iteration_reported && plan.mode != wire::Mode::kCalibrate;
  if (!suspicious && !sampled) return;
  UnitTime time = TimeSince(state, state.at_iteration_begin, NsOfTicks(since - own));
  if (sampled) {
    UnitTime share = time;
    share.wall_ns /= std::max(slot.ready, 1u);
    share.run_delay_ns /= std::max(slot.ready, 1u);
    MakeSample(state, wire::kWholeIteration, 0, share);
  }
  const uint64_t threshold_ns = plan.view.header().iteration_ns * std::max(slot.ready, 1u);
  if (!suspicious || time.Own() <= std::max(threshold_ns, plan.view.header().floor_ns)) return;
  wire::Violation violation = {};
  FillViolation(slot, {}, time, threshold_ns, violation);
  violation.flags = wire::Violation::kIterationCheck | wire::Violation::kStackFromSite;
  violation.unit_kind = static_cast<uint32_t>(UnitKind::kIteration);
  ReportViolation(state, plan, violation, place);
}

void EndIteration(ThreadState& state, const LoadedPlan& plan, const ReportPlace& place) {
  const uint64_t now = ReadTicks();
  t_unit = nullptr;
  EndPart(state, plan, now, place);
  const bool has_tail = plan.loops[state.slot->loop].has_handlers;
  if (has_tail) EndTail(state, plan, place);
  if (has_tail || plan.iteration_ticks != 0) CheckIteration(state, plan, now, place);
}

}  // namespace

void DropUnit(ThreadState& state) {
  t_unit = nullptr;
  state.plan = nullptr;
  if (state.slot == nullptr || state.slot->begin_ticks == 0) return;
  const SlotChange change(*state.slot);
  state.slot->begin_ticks = 0;
}

bool EnterLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp) {
  const uint64_t base_sp = (sp & ~uint64_t{15}) + static_cast<uint64_t>(int64_t{site.base_offset});
  if (state.plan == &plan && base_sp < state.slot->base_sp) return false;
  if (state.plan == &plan && state.slot->begin_ticks != 0 && base_sp == state.slot->base_sp &&
      site.loop == state.slot->loop) {
    EndIteration(state, plan, {.entry_sp = sp});
  }
  if (state.slot != nullptr && state.slot->begin_ticks != 0) {
    t_unit = nullptr;
    const SlotChange change(*state.slot);
    state.slot->begin_ticks = 0;
  }
  return true;
}

void LeaveLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp,
                   uint32_t ready) {
  if (!EnsureSlot(state) || site.loop >= plan.loops.size()) return;
  wire::UnitSlot& slot = *state.slot;
  state.plan = &plan;
  slot.base_sp = (sp & ~uint64_t{15}) + static_cast<uint64_t>(int64_t{site.base_offset});
  if (ready == 0) return;
  RefreshTimes(state, plan, ReadTicks());
  state.at_iteration_begin = state.at_begin;
  const SlotChange change(slot);
  slot.loop = site.loop;
  slot.ready = ready;
  slot.done = 0;
  state.tail_ticks = 0;
  state.iteration_own_ticks = 0;
  state.iteration_reported = false;
  std::fill(std::begin(state.tail_contexts), std::end(state.tail_contexts), 0);
  const bool has_handlers = plan.loops[site.loop].has_handlers;
  const uint64_t now = ReadTicks();
  slot.iteration_ticks = now;
  BeginUnit(state, plan, has_handlers ? UnitKind::kTail : UnitKind::kIteration, nullptr, now);
  t_unit = &slot;
}

void CrossBoundary(ThreadState& state, const GuardRecord& guard, const ContextRule& rule,
                   const ReportPlace& place) {
  const LoadedPlan* plan = state.plan;
  if (plan == nullptr || !plan->loops[state.slot->loop].has_handlers) return;
  wire::UnitSlot& slot = *state.slot;
  const bool to_tail = (rule.flags & wire::PlanContext::kTail) != 0;
  if (to_tail && (KindOf(slot) == UnitKind::kTail || slot.done == 0)) return;
  const uint64_t now = ReadTicks();
  EndPart(state, *plan, now, place);
  RefreshTimes(state, *plan, now);
  state.iteration_own_ticks += ReadTicks() - now;
  const SlotChange change(slot);
  if (to_tail) {
    BeginUnit(state, *plan, UnitKind::kTail, state.tail_contexts, ReadTicks());
    return;
  }
  ++slot.done;
  const bool command = (guard.flags & wire::PlanFunction::kCommand) != 0;
  BeginUnit(state, *plan, command ? UnitKind::kCommand : UnitKind::kHandler, nullptr, ReadTicks());
}

void PassDeadline(ThreadState& state, const ReportPlace& place) {
  const LoadedPlan* plan = state.plan;
  wire::UnitSlot& slot = *state.slot;
  const uint64_t begin = ReadTicks();
  slot.deadline_ticks = kNever;
  if (plan == nullptr || plan != CurrentPlan() || plan->mode != wire::Mode::kGuard ||
      state.reported) {
    return;
  }
  // A tail is judged per ready event, so by its end only.
  if (KindOf(slot) == UnitKind::kTail) return;
  const uint64_t possible_ns = LargestPossibleThresholdNs(plan->view, IdentityOf(slot));
  const uint64_t wall_ns = NsOfTicks(ElapsedTicks(state, begin));
  if (wall_ns <= possible_ns) {
    slot.deadline_ticks = Saturated(slot.begin_ticks, TicksOfNs(possible_ns));
    return;
  }
  const UnitTime time = TimeSince(state, state.at_begin, wall_ns);
  if (time.Own() <= possible_ns) {
    // It waited for a CPU: it may take so much longer.
    slot.deadline_ticks =
        Saturated(slot.begin_ticks, TicksOfNs(Saturated(possible_ns, time.run_delay_ns)));
  } else {
    state.reported = true;
    state.iteration_reported = true;
    const TypeVerdict verdict = InferTypeCached(*plan, IdentityOf(slot), state);
    wire::Violation violation = {};
    FillViolation(slot, verdict, time, possible_ns, violation);
    violation.flags |= wire::Violation::kStillRunning;
    ReportViolation(state, *plan, violation, place);
  }
  state.own_ticks += ReadTicks() - begin;
}

}  // namespace culprit::guard::runtime
