// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_tracker.h"

#include <algorithm>

#include "guard/runtime/loop_head.h"
#include "guard/runtime/process.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/trickle.h"
#include "guard/runtime/type_inference.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/unit_time.h"

namespace culprit::guard::runtime {
namespace {

using wire::UnitKind;

// Thread times are read when iterations took so much CPU time since the last time:
// a reading costs some 1 us, 4 us where nothing of it is in the caches, so 0.2 % of it...
constexpr uint64_t kUnreadNs = 2'000'000;
// ...of which so much more may be wall time, while units wait or have no CPU...
constexpr uint64_t kMaxStretch = 16;
// ...and so much more while threads get a CPU at once: then there is hardly a delay that could
// be taken for that of a later unit, and a long one is read behind the unit that had it...
constexpr uint32_t kMaxCalm = 4;
constexpr uint64_t kCalmShare = 16;              // of what units took, at most, without a CPU
constexpr uint64_t kCalibrateTimesNs = 100'000;  // ...and when they are so old while calibrating
constexpr uint64_t kClocksNs = 1'000'000'000;    // ticks and the clock drift apart
constexpr uint64_t kInterruptedNs = 100'000;     // a reading takes less, if nothing comes between
constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kAskAgainNs = 100'000;  // not sooner, whether a unit is too slow
// A unit that was made to wait for a CPU took at least a time slice of another.
constexpr uint64_t kShortNs = 20'000;

UnitKind KindOf(const wire::UnitSlot& slot) { return static_cast<UnitKind>(slot.kind); }

// A tail's time is that of all ready events, any other unit's of one.
uint32_t EventsOf(const wire::UnitSlot& slot) {
  return KindOf(slot) == UnitKind::kTail ? std::max(slot.ready, 1u) : 1;
}

UnitTime PerEvent(UnitTime time, uint32_t events) {
  return {.wall_ns = time.wall_ns / events,
          .run_delay_ns = time.run_delay_ns / events,
          .cpu_ns = time.cpu_ns / events};
}

// What iterations took since the thread's times were read.
uint64_t UnreadTicks(const ThreadState& state, uint64_t now) {
  return state.unread_ticks + (now - state.unread_from_ticks);
}

// Run delay comes about while a thread is in a unit or about to begin one, so what
// units took since the last reading, not its age, bounds how wrong it is; and a
// thread of a pool that works once in a while is not made to pay at every unit.
bool AreTimesOld(const ThreadState& state, const LoadedPlan& plan, uint64_t now) {
  if (state.at_begin.read_ticks == 0) return true;
  if (plan.mode == wire::Mode::kCalibrate) {
    return now - state.at_begin.read_ticks >= TicksOfNs(kCalibrateTimesNs);
  }
  return UnreadTicks(state, now) >= state.read_after_ticks;
}

void PublishTimes(ThreadState& state) {
  state.clocks_until_ticks = state.at_begin.read_ticks + TicksOfNs(kClocksNs);
  state.odd.times_moved = true;
  const SlotChange change(*state.slot);
  state.slot->delay_ns = state.at_begin.run_delay_ns;
  state.slot->delay_ticks = state.at_begin.read_ticks;
  state.slot->read_ns = state.at_begin.read_ns;
  PublishUnits(state);
}

// The reading is the one that what comes next is measured from. Where units mostly
// wait, by their own doing or for a CPU, the next one may come later.
void AdoptTimes(ThreadState& state, const ThreadTimes& times) {
  uint64_t stretch = 1;
  if (state.at_begin.read_ticks != 0) {
    const uint64_t took_ns = NsOfTicks(UnreadTicks(state, times.read_ticks));
    const uint64_t cpu_ns = std::max<uint64_t>(times.cpu_ns - state.at_begin.cpu_ns, 1);
    const uint64_t delay_ns = times.run_delay_ns - state.at_begin.run_delay_ns;
    const bool calm = delay_ns <= took_ns / kCalmShare;
    state.calm = calm ? std::min(std::max(2 * state.calm, 2u), kMaxCalm) : 1;
    stretch = std::clamp<uint64_t>(took_ns / cpu_ns, state.calm, kMaxStretch);
  }
  state.at_begin = times;
  state.read_after_ticks = TicksOfNs(kUnreadNs * stretch);
  state.unread_ticks = 0;
  state.unread_from_ticks = times.read_ticks;
  PublishTimes(state);
  SetRefresh(state, times.read_ticks);
}

// True: that took some time.
bool RefreshTimes(ThreadState& state, const LoadedPlan& plan, uint64_t now) {
  if (AreTimesOld(state, plan, now)) {
    ThreadTimes times = state.at_begin;
    // A thread that lost its CPU meanwhile would have that delay taken for the unit's.
    for (int tries = 0; tries < 3; ++tries) {
      ReadThreadTimes(state, times);
      if (ReadTicks() - times.read_ticks < TicksOfNs(kInterruptedNs)) break;
    }
    AdoptTimes(state, times);
    return true;
  }
  if (now < state.clocks_until_ticks) return false;
  state.at_begin.read_ticks = ReadTicks();
  state.at_begin.read_ns = MonotonicNs();
  PublishTimes(state);
  return true;
}

void BeginUnit(ThreadState& state, const LoadedPlan& plan, UnitKind kind, const uint64_t* contexts,
               uint64_t now) {
  wire::UnitSlot& slot = *state.slot;
  if (contexts == nullptr) {
    ClearWords(slot.contexts, wire::kContextWords);
  } else {
    CopyWords(contexts, slot.contexts, wire::kContextWords);
  }
  BeginPart(state, slot, kind, now);
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

// One more unit. True: it is a sample.
bool CountUnit(ThreadState& state, const LoadedPlan& plan) {
  ++state.slot->units;
  if (plan.mode == wire::Mode::kCalibrate) return true;
  const uint32_t every = plan.view.header().sample_every;
  if (every == 0 || --state.until_sample != 0) return false;
  state.until_sample = every;
  return true;
}

// The hits that were not counted, of all units that a sample stands for.
void EstimateHits(const ThreadState& state, const LoadedPlan& plan) {
  wire::UnitSlot& slot = *state.slot;
  uint64_t hits = 0;
  for (uint32_t i = 0; i < wire::kContextWords; ++i) {
    hits += static_cast<uint64_t>(__builtin_popcountll(slot.contexts[i] & plan.uncounted[i]));
  }
  const bool all = plan.mode == wire::Mode::kCalibrate;
  slot.hits += hits * (all ? 1 : plan.view.header().sample_every);
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

// Whether it is to be known how much of a unit's time was its own: where it may be too slow;
// where it was so long that what it waited for a CPU would hide that a later one is; and
// where it is a sample, unless it was too short to have waited.
bool AreTimesWanted(const LoadedPlan& plan, uint64_t wall_ns, uint64_t threshold_ns,
                    uint32_t events, bool sampled) {
  return wall_ns > threshold_ns || (plan.mode == wire::Mode::kGuard && wall_ns >= kUnreadNs) ||
         (sampled && wall_ns / events > kShortNs);
}

void EndUnit(ThreadState& state, const LoadedPlan& plan, const EndedUnit& unit,
             const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  const uint32_t events = EventsOf(slot);
  const bool sampled = CountUnit(state, plan);
  if (sampled) EstimateHits(state, plan);
  const bool suspicious = unit.ticks / events >= plan.loops[slot.loop].smallest_ticks[slot.kind];
  if (!suspicious && !sampled && !unit.told) return;
  const TypeVerdict verdict = InferTypeCached(plan, IdentityOf(slot), state);
  const uint64_t wall_ns = NsOfTicks(unit.ticks);
  const uint64_t threshold_ns = TimesOrMax(ThresholdNs(plan.view, verdict), events);
  UnitTime time = {.wall_ns = wall_ns};
  if (unit.told || AreTimesWanted(plan, wall_ns, threshold_ns, events, sampled)) {
    time = TimeOf(state, wall_ns);
    // A unit that looks slow was perhaps only without a CPU, and so may the next be.
    if (plan.mode == wire::Mode::kGuard) AdoptTimes(state, state.at_end);
  }
  if (sampled) MakeSample(state, verdict, PerEvent(time, events), unit.begin_ns);
  const bool slow = time.Own() > threshold_ns;
  if (!slow && !unit.told) return;
  if (slow) state.iteration_reported = true;
  wire::Violation violation = {};
  FillViolation(slot, verdict, time, threshold_ns, violation);
  violation.begin_ns = unit.begin_ns;
  if (unit.told) return ReportEndOfRunning(state, violation, AtEnd(place), slow);
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
  state.odd.loud = true;
  state.iteration_own_ticks += state.own_ticks;
  if (KindOf(slot) != UnitKind::kTail) {
    const EndedUnit unit = {.ticks = elapsed, .begin_ns = UnitBeginNs(state), .told = state.told};
    return EndUnit(state, plan, unit, place);
  }
  state.tail_ticks += elapsed;
  state.tail_told = state.told;
  if (IsLongPart(plan, slot, elapsed)) MeasureTailPart(state, NsOfTicks(elapsed));
  CopyWords(slot.contexts, state.tail_contexts, wire::kContextWords);
}

void EndTail(ThreadState& state, const LoadedPlan& plan, const ReportPlace& place) {
  wire::UnitSlot& slot = *state.slot;
  slot.kind = static_cast<uint32_t>(UnitKind::kTail);
  CopyWords(state.tail_contexts, slot.contexts, wire::kContextWords);
  const EndedUnit tail = {
      .ticks = state.tail_ticks, .begin_ns = IterationBeginNs(state), .told = state.tail_told};
  EndUnit(state, plan, tail, place);
}

// All of an iteration that was cut, per ready event: what no single unit shows. (One
// that was not is a unit itself, with the threshold of its type.)
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

void EndIteration(ThreadState& state, const LoadedPlan& plan, uint64_t now,
                  const ReportPlace& place) {
  state.owner->unit = nullptr;
  state.unread_ticks = UnreadTicks(state, now);
  state.unread_from_ticks = now;
  EndPart(state, plan, now, place);
  const bool has_tail = plan.loops[state.slot->loop].has_handlers;
  if (!has_tail) return;
  EndTail(state, plan, place);
  CheckIteration(state, plan, now, place);
}

// What a loop does between its last turn and a wait is no unit, however long it took.
void EndSearch(ThreadState& state, uint64_t now, const ReportPlace& place) {
  state.unread_ticks = UnreadTicks(state, now);
  state.unread_from_ticks = now;
  if (!state.told) return;
  wire::Violation violation = {};
  const UnitTime time = {.wall_ns = NsOfTicks(ElapsedTicks(state, now))};
  FillViolation(*state.slot, {}, time, UINT64_MAX, violation);
  violation.begin_ns = UnitBeginNs(state);
  ReportEndOfRunning(state, violation, AtEnd(place), false);
}

// What only the long way leaves behind.
void ForgetIteration(ThreadState& state) {
  state.odd.loud = false;
  state.own_ticks = 0;
  state.iteration_own_ticks = 0;
  state.tail_time = {};
  state.told = false;
  state.tail_told = false;
  state.iteration_reported = false;
}

// The thread is in another loop than before, or under another plan.
bool EnterLoop(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp) {
  if (!EnsureSlot(state) || site.loop >= plan.loops.size()) return false;
  if (state.plan != &plan) {
    const wire::PlanHeader& header = plan.view.header();
    const uint32_t every = header.sample_every;
    if (every == 0) state.until_sample = kNever;
    if (every != 0 && state.until_sample - 1 >= every) state.until_sample = every;
    state.odd.calibrates = plan.mode == wire::Mode::kCalibrate;
    state.odd.counts_hits = header.hit_counting != 0;
    state.iteration_allowed_ticks = plan.iteration_ticks;
    state.context_words =
        static_cast<uint16_t>(std::min(header.context_bits / 64 + 1, wire::kContextWords));
    ClearWords(state.slot->contexts, wire::kContextWords);
    ClearWords(state.tail_contexts, wire::kContextWords);
  }
  ClearWords(state.foreign_sites,
             kForeignSites);  // for another loop they may be where threads park
  state.plan = &plan;
  state.head = &site;
  state.head_sp = sp;
  state.head_site = site.return_address;
  state.head_call = site.call;
  state.limits = plan.loops[site.loop];
  state.slot->loop = site.loop;
  state.slot->base_sp = BaseOf(site, sp);
  ForgetOutputs(state);
  ForgetIteration(state);
  return true;
}

}  // namespace

void DropUnit(ThreadState& state) {
  state.owner->unit = nullptr;
  state.plan = nullptr;
  state.quiet_until_ticks = 0;
  if (state.slot == nullptr || state.slot->begin_ticks == 0) return;
  const SlotChange change(*state.slot);
  state.slot->begin_ticks = 0;
}

bool EnterLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp,
                   uint64_t now) {
  if ((site.flags & wire::PlanSite::kHandOver) != 0) {
    DropUnit(state);
    return false;
  }
  wire::UnitSlot* slot = state.slot;
  if (slot == nullptr || slot->begin_ticks == 0) return true;
  const bool own =
      state.plan == &plan && BaseOf(site, sp) == slot->base_sp && site.loop == slot->loop;
  if (!own || !WaitQuietly(state, now)) {
    if (own && state.turned) {
      EndSearch(state, now, {.entry_sp = sp});
    } else if (own) {
      EndIteration(state, plan, now, {.entry_sp = sp});
    }
    state.owner->unit = nullptr;
    state.quiet_until_ticks = 0;
    const SlotChange change(*slot);
    slot->begin_ticks = 0;
  }
  if (state.sample_count != 0) FlushSamplesBeforeWait(state, now);
  return true;
}

void LeaveLoopWait(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp,
                   uint32_t ready) {
  const bool same = state.plan == &plan && state.head == &site && state.head_sp == sp;
  if (!same && !EnterLoop(state, plan, site, sp)) return;
  if (ready == 0) return;
  if (state.odd.loud) ForgetIteration(state);
  uint64_t now = ReadTicks();
  state.unread_from_ticks = now;
  if (state.odd.calibrates || state.unread_ticks >= state.read_after_ticks ||
      now >= state.clocks_until_ticks || state.odd.times_moved) {
    if (RefreshTimes(state, plan, now)) now = ReadTicks();
    state.at_iteration_begin = state.at_begin;
    state.odd.times_moved = false;
  }
  state.odd.loud = state.odd.calibrates;
  if (state.odd.counts_hits) {
    std::fill(std::begin(state.context_hits), std::end(state.context_hits), 0);
  }
  BeginIteration(state, ready, now);
}

void TurnLoop(ThreadState& state, const ReportPlace& place) {
  const LoadedPlan& plan = *state.plan;
  EndIteration(state, plan, ReadTicks(), place);
  BeginAtTurn(state, plan, *state.head, state.head_sp);
}

void BeginAtTurn(ThreadState& state, const LoadedPlan& plan, const SiteRule& site, uint64_t sp) {
  LeaveLoopWait(state, plan, site, sp, 1);
  state.turned = true;
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
  BeginUnit(state, *plan, KindBegunBy(guard.flags), nullptr, ReadTicks());
}

void PassDeadline(ThreadState& state, const ReportPlace& place) {
  const LoadedPlan* plan = state.plan;
  wire::UnitSlot& slot = *state.slot;
  const uint64_t begin = ReadTicks();
  slot.deadline_ticks = kNever;
  state.odd.loud = true;
  state.quiet_until_ticks = 0;
  if (plan == nullptr || plan->mode != wire::Mode::kGuard || state.told) return;
  const bool is_tail = KindOf(slot) == UnitKind::kTail;
  const uint64_t possible_ns =
      TimesOrMax(LargestPossibleThresholdNs(plan->view, IdentityOf(slot)), EventsOf(slot));
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
