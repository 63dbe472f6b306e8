// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/loop_turn.h"

#include "guard/runtime/rare_hit.h"
#include "guard/runtime/session.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/unit_tracker.h"
#include "guard/runtime/unwinder.h"
#include "guard/runtime/violation_report.h"
#include "guard/runtime/wait_frame.h"

namespace culprit::guard::runtime {
namespace {

struct Turn {
  const ContextRule* rule = nullptr;  // null: it is none
  const SiteRule* head = nullptr;
  uint64_t base_sp = 0;
};

bool IsOfPlan(const LoadedPlan& plan, const GuardRecord& guard) {
  return &guard >= plan.guards.data() && &guard < plan.guards.data() + plan.guards.size();
}

const ContextRule* TurnAt(const GuardRecord& guard, int32_t depth, uint64_t return_address) {
  for (uint32_t i = 0; i < guard.count; ++i) {
    const ContextRule& rule = guard.rules[i];
    if ((rule.flags & wire::PlanContext::kTurn) != 0 && rule.depth == depth &&
        (rule.return_address == 0 || rule.return_address == return_address)) {
      return &rule;
    }
  }
  return nullptr;
}

// A wait of the loop that the function holds; of several loops the first.
const SiteRule* HeadHeldBy(const LoadedPlan& plan, uint64_t function) {
  const SiteRule* best = nullptr;
  for (const SiteRule& site : plan.sites) {
    if (site.return_address == 0 || site.holder != function ||
        (site.flags & wire::PlanSite::kTurns) == 0) {
      continue;
    }
    if (best == nullptr || site.loop < best->loop) best = &site;
  }
  return best;
}

Turn FindTurn(ThreadState& state, const LoadedPlan& plan, const RareHit& hit) {
  const AddressRange& stack = StackOf(state, hit.sp);
  Registers registers = {};
  StackFrame caller = {};
  if (!FindHookedCaller(hit.sp, hit.return_address, stack, registers) ||
      Unwind(registers, stack, true, &caller, 1) == 0 || caller.cfa == 0 || caller.function == 0) {
    return {};
  }
  Turn turn;
  turn.base_sp = (caller.cfa - kCfaAboveEntry) & ~uint64_t{15};
  turn.head = HeadHeldBy(plan, caller.function);
  if (turn.head == nullptr) return {};
  const auto depth = static_cast<int32_t>(turn.base_sp - (hit.sp & ~uint64_t{15}));
  turn.rule = TurnAt(*hit.guard, depth, hit.return_address);
  return turn;
}

void RememberNoTurn(ThreadState& state, const LoadedPlan& plan, uint64_t return_address) {
  if (state.no_turns_of != plan.generation) ClearWords(state.no_turns, kNoTurns);
  state.no_turns_of = plan.generation;
  state.no_turns[NoTurnIndex(return_address)] = return_address;
}

// False: nothing can begin in this process.
bool Begin(ThreadState& state, const LoadedPlan& plan, const Turn& turn, uint64_t sp) {
  const bool same = state.plan == &plan && state.slot->base_sp == turn.base_sp &&
                    state.head->loop == turn.head->loop;
  if (same) {
    BeginAtTurn(state, plan, *state.head, state.head_sp);
  } else {
    const auto offset = static_cast<uint64_t>(int64_t{turn.head->base_offset});
    // Calls leave all stack pointers with the same remainder.
    BeginAtTurn(state, plan, *turn.head, turn.base_sp - offset + sp % 16);
  }
  if (state.owner->unit == nullptr) return false;
  if ((turn.rule->flags & wire::PlanContext::kNoBit) == 0) {
    state.slot->contexts[turn.rule->bit / 64] |= uint64_t{1} << turn.rule->bit % 64;
  }
  return true;
}

}  // namespace

void HandleHitOutside(void* argument) {
  const auto& hit = *static_cast<const RareHit*>(argument);
  const LoadedPlan* plan = CurrentPlan();
  if (plan == nullptr || !IsOfPlan(*plan, *hit.guard)) return;
  ThreadState* state = ThisThread();
  if (state == nullptr || state->odd.in_runtime) return;
  state->odd.in_runtime = true;
  const Turn turn = FindTurn(*state, *plan, hit);
  if (turn.rule == nullptr || !Begin(*state, *plan, turn, hit.sp)) {
    RememberNoTurn(*state, *plan, hit.return_address);
  }
  state->odd.in_runtime = false;
}

}  // namespace culprit::guard::runtime
