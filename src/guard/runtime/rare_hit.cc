// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/rare_hit.h"

#include "guard/runtime/guard_hit.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/unit_tracker.h"

namespace culprit::guard::runtime {
namespace {

// One-second windows, shared by all threads: a window that ends is begun anew by
// whoever sees it first.
void ChargeHits(ThreadState& state, const LoadedPlan& plan, const GuardRecord& guard) {
  const uint64_t now = ReadTicks();
  uint64_t begin = guard.window_ticks.load(std::memory_order_relaxed);
  if (now - begin > TicksOfNs(1'000'000'000) &&
      guard.window_ticks.compare_exchange_strong(begin, now)) {
    guard.window_hits.store(0, std::memory_order_relaxed);
  }
  const uint64_t hits = guard.window_hits.fetch_add(kChargeHits) + kChargeHits;
  if (hits <= plan.excessive_hits || guard.excessive.exchange(true)) return;
  AskForWork();
  state.work_ticks = 0;
}

}  // namespace

void HandleRareHit(void* argument) {
  const auto& hit = *static_cast<const RareHit*>(argument);
  ThreadState* state = KnownThread();
  if (state == nullptr || state->odd.in_runtime || state->slot == nullptr ||
      state->plan == nullptr) {
    return;
  }
  state->odd.in_runtime = true;
  wire::UnitSlot& slot = *state->slot;
  if (slot.hits % kChargeHits == 0) ChargeHits(*state, *state->plan, *hit.guard);
  const ReportPlace place = {
      .entry_sp = hit.sp, .return_address = hit.return_address, .entry = hit.guard->entry};
  if (hit.rule != nullptr) {
    if (IsTurn(state->limits, hit.rule->flags)) {
      TurnLoop(*state, place);
    } else if ((hit.rule->flags & kCuts) != 0) {
      CrossBoundary(*state, *hit.guard, *hit.rule, place);
    }
    if ((hit.rule->flags & wire::PlanContext::kNoBit) == 0) {
      slot.contexts[hit.rule->bit / 64] |= uint64_t{1} << hit.rule->bit % 64;
      if (state->plan->view.header().hit_counting != 0) ++state->context_hits[hit.rule->bit];
    }
  }
  if (slot.begin_ticks != 0 && ReadTicks() > slot.deadline_ticks) {
    slot.deadline_ticks = UINT64_MAX;
    // Of a plan that is no longer in force nothing is said.
    if (state->plan == CurrentPlan()) PassDeadline(*state, place);
  }
  state->odd.in_runtime = false;
}

}  // namespace culprit::guard::runtime
