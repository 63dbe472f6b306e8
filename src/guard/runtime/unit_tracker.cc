// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_tracker.h"

#include <algorithm>

#include "guard/runtime/process.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/type_inference.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_time.h"

namespace culprit::guard::runtime {
namespace {

using wire::UnitKind;

// Thread times are read when units took so long since the last time...
constexpr uint64_t kUnreadNs = 1'000'000;
// ...but for a while after a unit that looked slow, when they are so old...
constexpr uint64_t kExactForNs = 1'000'000'000;
constexpr uint64_t kExactTimesNs = 1'000'000;
constexpr uint64_t kCalibrateTimesNs = 100'000;  // ...and so while calibrating
constexpr uint64_t kClocksNs = 1'000'000'000;    // ticks and the clock drift apart
constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kAskAgainNs = 100'000;  // not sooner, whether a unit is too slow
// A unit that was made to wait for a CPU took at least a time slice of another.
constexpr uint64_t kShortNs = 20'000;

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

uint64_t Times(uint64_t a, uint32_t n) { return a > UINT64_MAX / n ? UINT64_MAX : a * n; }

// A tail's time is that of all ready events, any other unit's of one.
uint32_t EventsOf(const wire::UnitSlot& slot) {
  return KindOf(slot) == UnitKind::kTail ? std::max(slot.ready, 1u) : 1;
}

UnitTime PerEvent(UnitTime time, uint32_t events) {
  return {.wall_ns = time.wall_ns / events,
          .run_delay_ns = time.run_delay_ns / events,
          .cpu_ns = time.cpu_ns / events};
}

// Run delay comes about while a thread is in a unit or about to begin one, so what
// units took since the last reading, not its age, bounds how wrong it is; and a
// thread of a pool that works once in a while is not made to pay at every unit.
bool AreTimesOld(const ThreadState& state, const LoadedPlan& plan, uint64_t now) {
  if (state.at_begin.read_ticks == 0) return true;
  const uint64_t age = now - state.at_begin.read_ticks;
  if (plan.mode == wire::Mode::kCalibrate) return age >= TicksOfNs(kCalibrateTimesNs);
  if (now < state.exact_until_ticks) return age >= TicksOfNs(kExactTimesNs);
  return state.unread_ticks >= TicksOfNs(kUnreadNs);
}

void RefreshTimes(ThreadState& state, const LoadedPlan& plan, uint64_t now) {
  ThreadTimes& times = state.at_begin;
  if (AreTimesOld(state, plan, now)) {
    ReadThreadTimes(state, times);
    state.unread_ticks = 0;
  } else if (now - times.read_ticks >= TicksOfNs(kClocksNs)) {
    times.read_ticks = ReadTicks();
    times.read_ns = MonotonicNs();
  } else {
    return;
  }
  const SlotChange change(*state.slot);
  state.slot->delay_ns = times.run_delay_ns;
  state.slot->delay_ticks = times.read_ticks;
  state.slot->read_ns = times.read_ns;
  PublishUnits(state);
}

// What must have passed before anything of this unit or iteration can be too slow.
uint64_t DeadlineOf(const LoadedPlan& plan, const ThreadState& state, uint64_t begin) {
  const wire::UnitSlot& slot = *state.slot;
  uint64_t allowed = Times(plan.loops[slot.loop].smallest_ticks[slot.kind], EventsOf(slot));
  if (KindOf(slot) == UnitKind::kTail) allowed -= std::min(allowed, state.tail_ticks);
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
  slot.deadline_ticks = DeadlineOf(plan, state, now);
  slot.overdue_ticks = slot.deadline_ticks;
  state.own_ticks = 0;
  state.told = kind == UnitKind::kTail && state.tail_told;
  if (plan.view.header().hit_counting != 0) {
    std::fill(std::begin(state.context_hits), std::end(state.context_hits), 0);
  }
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

void MakeSample(ThreadState& state, const TypeVerdict& verdict, const UnitTime& time,
                uint64_t begin_ns) {
  wire::Sample sample = {};
  sample.type = verdict.type;
  sample.tid = state.tid.load(std::memory_order_relaxed);
  sample.begin_ns = begin_ns;
  sample.wall_ns = time.wall_ns;
  sample.run_delay_ns = static_cast<uint32_t>(std::min<uint64_t>(time.run_delay_ns, UINT32_MAX));
  sample.similarity_ppm = verdict.similarity_ppm;
  if (DoesAnybodyListen(MonotonicNs())) AddSample(state, sample);
}

// A unit that ends at a boundary was not in the function that begins the next.
ReportPlace AtEnd(ReportPlace place) {
  place.entry = 0;
  return place;
}

// What ends: of a tail all parts of its iteration.
struct EndedUnit {
  uint64_t ticks = 0;
  uint64_t begin_ns = 0;
  bool told = false;  // culprit knows of it
};

UnitTime TimeOf(ThreadState& state, uint64_t wall_ns) {
  return KindOf(*state.slot) == UnitKind::kTail ? TimeOfTail(state, state.tail_time, wall_ns)
                                                : TimeSince(state, state.at_begin, wall_ns);
}

void EndUnit(ThreadState& state, const LoadedPlan& plan, const EndedUnit& unit,
             const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  const uint32_t events = EventsOf(slot);
  ++slot.units;
  ++state.unpublished_units;
  state.unread_ticks += unit.ticks;
  const bool suspicious = unit.ticks / events >= plan.loops[slot.loop].smallest_ticks[slot.kind];
  const bool sampled = WantsSample(state, plan);
  if (!suspicious && !sampled && !unit.told) return;
  const TypeVerdict verdict = InferTypeCached(plan, IdentityOf(slot), state);
  const uint64_t wall_ns = NsOfTicks(unit.ticks);
  UnitTime time = {.wall_ns = wall_ns};
  if (suspicious) state.exact_until_ticks = ReadTicks() + TicksOfNs(kExactForNs);
  if (suspicious || unit.told ||
      (plan.mode == wire::Mode::kCalibrate && wall_ns / events > kShortNs)) {
    time = TimeOf(state, wall_ns);
  }
  if (sampled) MakeSample(state, verdict, PerEvent(time, events), unit.begin_ns);
  const uint64_t threshold_ns = Times(ThresholdNs(plan.view, verdict), events);
  const bool slow = time.Own() > threshold_ns;
  if (!slow && !unit.told) return;
  if (slow) state.iteration_reported = true;
  wire::Violation violation = {};
  FillViolation(slot, verdict, time, threshold_ns, violation);
  violation.begin_ns = unit.begin_ns;
  if (unit.told) return ReportEndOfRunning(state, violation, slow);
  violation.flags |= wire::Violation::kStackFromSite;
  ReportViolation(state, plan, violation, AtEnd(place));
}

// Whatever runs now ends here: its time, without what the runtime took of it.
uint64_t ElapsedTicks(const ThreadState& state, uint64_t now) {
  const uint64_t since = now - state.slot->begin_ticks;
  return since > state.own_ticks ? since - state.own_ticks : 0;
}

uint64_t IterationBeginNs(const ThreadState& state) {
  return NsAt(state.at_iteration_begin, state.slot->iteration_ticks);
}

uint64_t UnitBeginNs(const ThreadState& state) {
  return KindOf(*state.slot) == UnitKind::kTail ? IterationBeginNs(state)
                                                : NsAt(state.at_begin, state.slot->begin_ticks);
}

// A part that could make the tail slow by itself; while calibrating, all but the
// shortest.
bool IsLongPart(const LoadedPlan& plan, const wire::UnitSlot& slot, uint64_t ticks) {
  if (plan.mode == wire::Mode::kCalibrate) return NsOfTicks(ticks) > kShortNs;
  return ticks >= plan.loops[slot.loop].smallest_ticks[slot.kind];
}

// Ends the running part; a part of the tail is only added up.
void EndPart(ThreadState& state, const LoadedPlan& plan, uint64_t now, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  const uint64_t elapsed = ElapsedTicks(state, now);
  state.iteration_own_ticks += state.own_ticks;
  if (KindOf(slot) != UnitKind::kTail) {
    const EndedUnit unit = {.ticks = elapsed, .begin_ns = UnitBeginNs(state), .told = state.told};
    return EndUnit(state, plan, unit, place);
  }
  state.tail_ticks += elapsed;
  state.tail_told = state.told;
  if (IsLongPart(plan, slot, elapsed)) MeasureTailPart(state, NsOfTicks(elapsed));
  std::copy(slot.contexts, slot.contexts + wire::kContextWords, state.tail_contexts);
}

void EndTail(ThreadState& state, const LoadedPlan& plan, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  slot.kind = static_cast<uint32_t>(UnitKind::kTail);
  SetContexts(slot, state.tail_contexts);
  const EndedUnit tail = {
      .ticks = state.tail_ticks, .begin_ns = IterationBeginNs(state), .told = state.tail_told};
  EndUnit(state, plan, tail, place);
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
    MakeSample(state, {.type = wire::kWholeIteration}, PerEvent(time, std::max(slot.ready, 1u)),
               IterationBeginNs(state));
  }
  const uint64_t threshold_ns = plan.view.header().iteration_ns * std::max(slot.ready, 1u);
  if (!suspicious || time.Own() <= std::max(threshold_ns, plan.view.header().floor_ns)) return;
  wire::Violation violation = {};
  FillViolation(slot, {}, time, threshold_ns, violation);
  violation.flags = wire::Violation::kIterationCheck | wire::Violation::kStackFromSite;
  violation.unit_kind = static_cast<uint32_t>(UnitKind::kIteration);
  violation.begin_ns = IterationBeginNs(state);
  ReportViolation(state, plan, violation, place);
}

void EndIteration(ThreadState& state, const LoadedPlan& plan, const ReportPlace& place) {
  const uint64_t now = ReadTicks();
  t_unit = nullptr;
  EndPart(state, plan, now, place);
  const bool has_tail = plan.loops[state.slot->loop].has_handlers;
  if (has_tail) EndTail(state, plan, place);
  if (has_tail || plan.iteration_ticks != 0) CheckIteration(state, plan, now, place);
  FlushSamplesBeforeWait(state, now);
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
  state.tail_time = {};
  state.tail_told = false;
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
  if (plan == nullptr || plan->mode != wire::Mode::kGuard || state.told) return;
  const bool is_tail = KindOf(slot) == UnitKind::kTail;
  const uint64_t possible_ns =
      Times(LargestPossibleThresholdNs(plan->view, IdentityOf(slot)), EventsOf(slot));
  const uint64_t part_ns = NsOfTicks(ElapsedTicks(state, begin));
  UnitTime time = {.wall_ns = part_ns + (is_tail ? NsOfTicks(state.tail_ticks) : 0)};
  if (time.wall_ns > possible_ns) {
    const UnitTime part = TimeSince(state, state.at_begin, part_ns);
    time = is_tail ? TimeOfTail(state, Joined(state.tail_time, part), time.wall_ns) : part;
  }
  if (time.Own() <= possible_ns) {
    // Never asked again at once: each question takes time, and what it takes is
    // not the unit's.
    const uint64_t left_ns = std::max(possible_ns - time.Own(), kAskAgainNs);
    slot.deadline_ticks = Saturated(ReadTicks(), TicksOfNs(left_ns));
    slot.overdue_ticks = slot.deadline_ticks;
  } else {
    const TypeVerdict verdict = InferTypeCached(*plan, IdentityOf(slot), state);
    wire::Violation violation = {};
    FillViolation(slot, verdict, time, possible_ns, violation);
    violation.begin_ns = UnitBeginNs(state);
    state.told = ReportRunning(state, *plan, violation, place);
  }
  state.own_ticks += ReadTicks() - begin;
}

}  // namespace culprit::guard::runtime
