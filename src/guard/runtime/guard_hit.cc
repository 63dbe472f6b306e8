// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/guard_hit.h"

#include "guard/runtime/hook.h"
#include "guard/runtime/loaded_plan.h"
#include "guard/runtime/loop_turn.h"
#include "guard/runtime/near_code.h"
#include "guard/runtime/rare_hit.h"
#include "guard/runtime/session.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/vector_state.h"
#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {
namespace {

// Reading the counter is most of what a hit costs, so it is read at some hits only.
constexpr uint64_t kClockMask = kHitsToACall - 1;

// The unit may be too slow, or the hits are to be charged.
[[gnu::always_inline]] inline bool IsDue(const wire::UnitSlot& slot, uint64_t hits) {
  return (hits & kClockMask) == 0 && (ReadTicks() > slot.deadline_ticks || hits % kChargeHits == 0);
}

__attribute__((noinline, cold)) void TakeRareHit(const ContextRule* rule, uint64_t sp,
                                                 uint64_t return_address,
                                                 const GuardRecord& guard) {
  RareHit hit = {&guard, rule, sp, return_address};
  CallSavingVectors(HandleRareHit, &hit);
}

__attribute__((noinline, cold)) void TakeHitOutside(uint64_t sp, uint64_t return_address,
                                                    const GuardRecord& guard) {
  const LoadedPlan* plan = CurrentPlan();
  const ThreadState* state = KnownThread();
  if (plan == nullptr || (state != nullptr && IsNoTurn(*state, *plan, return_address))) return;
  RareHit hit = {&guard, nullptr, sp, return_address};
  CallSavingVectors(HandleHitOutside, &hit);
}

CULPRIT_NEAR_CODE __attribute__((noinline)) bool TakeQuietTurn(ThreadState& state) {
  return TurnQuietly(state, ReadTicks());
}

// A boundary between units that nothing is to be said of. In a forked child that makes no use of
// guards yet the state is empty, and has another slot than the hit.
[[gnu::always_inline]] inline bool TakeQuietBoundary(wire::UnitSlot& slot, ThreadState* state,
                                                     uint32_t flags, uint32_t bit,
                                                     wire::UnitKind begun) {
  if (state == nullptr || state->slot != &slot || state->plan == nullptr || state->odd.in_runtime) {
    return false;
  }
  if (IsTurn(state->limits, flags)) {
    if (!TakeQuietTurn(*state)) return false;
  } else if ((flags & kCuts) != 0 && !CutQuietly(*state, flags, begun, ReadTicks())) {
    return false;
  }
  if ((flags & wire::PlanContext::kNoBit) == 0) slot.contexts[bit / 64] |= uint64_t{1} << bit % 64;
  return true;
}

__attribute__((noinline)) bool TakeQuietRule(wire::UnitSlot& slot, const ContextRule& rule,
                                             const GuardRecord& guard) {
  return (rule.flags & ~kQuietFlags) == 0 &&
         TakeQuietBoundary(slot, KnownThread(), rule.flags, rule.bit, KindBegunBy(guard.flags));
}

}  // namespace

CULPRIT_NEAR_CODE void CutHit(void* slot_pointer, uint64_t sp, uint64_t return_address,
                              const void* record, uint64_t cut, void* thread) {
  auto& slot = *static_cast<wire::UnitSlot*>(slot_pointer);
  const uint64_t hits = ++slot.hits;
  const Cut known = CutOf(cut);
  if (__builtin_expect(hits % kChargeHits != 0, 1) &&
      TakeQuietBoundary(slot, static_cast<ThreadState*>(thread), known.flags, known.bit,
                        known.begun)) {
    return;
  }
  const auto& guard = *static_cast<const GuardRecord*>(record);
  TakeRareHit(guard.rules + known.rule, sp, return_address, guard);
}

CULPRIT_NEAR_CODE void GuardHit(void* slot_pointer, uint64_t sp, uint64_t return_address,
                                const void* record) {
  const auto& guard = *static_cast<const GuardRecord*>(record);
  if (__builtin_expect(slot_pointer == nullptr, 0))
    return TakeHitOutside(sp, return_address, guard);
  auto& slot = *static_cast<wire::UnitSlot*>(slot_pointer);
  const auto depth = static_cast<int32_t>(slot.base_sp - (sp & ~uint64_t{15}));
  const uint64_t hits = ++slot.hits;
  const ContextRule* rule = guard.rules;
  for (const ContextRule* end = rule + guard.count;; ++rule) {
    if (rule == end) {
      // None of the plan's contexts, but inside of the loop a unit is no less late for that.
      if (__builtin_expect(IsDue(slot, hits), 0) && (depth > 0 || hits % kChargeHits == 0)) {
        TakeRareHit(nullptr, sp, return_address, guard);
      }
      return;
    }
    if (rule->depth == depth &&
        (rule->return_address == 0 || rule->return_address == return_address)) {
      break;
    }
  }
  if (__builtin_expect(rule->flags == 0, 1)) {
    slot.contexts[rule->bit / 64] |= uint64_t{1} << rule->bit % 64;
    if (__builtin_expect(!IsDue(slot, hits), 1)) return;
  } else if (hits % kChargeHits != 0 && TakeQuietRule(slot, *rule, guard)) {
    return;
  }
  TakeRareHit(rule, sp, return_address, guard);
}

}  // namespace culprit::guard::runtime
