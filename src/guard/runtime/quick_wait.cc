// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/quick_wait.h"

#include "guard/runtime/near_code.h"

namespace culprit::guard::runtime {

CULPRIT_NEAR_CODE void LeaveQuickly(ThreadState& state, uint32_t call, CallPlace place,
                                    const epoll_event* events, uint32_t ready) {
  const LoadedPlan* plan = CurrentPlan();
  if (plan == nullptr) return;
  if (!IsAtItsHead(state, plan, place)) {
    if (state.plan == plan) return;
    return LeaveUnderNewPlan(state, *plan, call, place, ready);
  }
  const uint64_t now = ReadTicks();
  if (state.odd.Any() || state.unread_ticks >= state.read_after_ticks ||
      now >= state.clocks_until_ticks || BeginsWithOutput(FirstOf(events, ready))) {
    return LeaveHead(state, place, events, ready);
  }
  state.unread_from_ticks = now;
  BeginIteration(state, ready, now);
}

}  // namespace culprit::guard::runtime
