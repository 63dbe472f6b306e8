// SPDX-License-Identifier: Apache-2.0
//
// The quick way through a wait call: at the head of the thread's own loop, where
// nothing is to be said of the unit that ends; or at a call that is no head at all.
// Everything is inlined into the detour of the call, where much of it is constant:
// behind a system call hardly any of the runtime's code and data is in the near
// caches, and what a unit costs is how many of their lines it needs, some fifteen
// here. All else goes the long way (wait_frame.h), which does the same, and more.
//
// In the thread's own time.
#pragma once

#include <cstdint>

#include "guard/runtime/session.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/trickle.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/unit_cut.h"
#include "guard/runtime/wait_frame.h"
#include "guard/runtime/wait_shape.h"

namespace culprit::guard::runtime {

// A thread reads on and on from one descriptor at the head of its loop: that it
// blocks is asked once in so many reads, and after one that failed.
inline constexpr uint32_t kUsesOfAnswer = 64;

// The call is known to be no site of the plan.
[[gnu::always_inline]] inline bool IsForeign(const CallPlace& place) {
  const ThreadState* state = KnownThread();
  return state != nullptr && state->foreign_site == place.site && state->plan == CurrentPlan() &&
         state->plan != nullptr;
}

// The thread waits where it waited the last time, at the head of its loop.
[[gnu::always_inline]] inline bool IsAtItsHead(const ThreadState& state, const LoadedPlan* plan,
                                               const CallPlace& place) {
  return state.head_sp == place.sp && state.head_site == place.site && state.plan == plan;
}

// That the call may block is known without asking anybody.
[[gnu::always_inline]] inline bool SurelyBlocks(ThreadState& state, WaitShape shape,
                                                const CallArguments& arguments) {
  if (!IsFdShape(shape)) return TimeoutOf(shape, arguments) != Timeout::kZero;
  const int fd = static_cast<int>(arguments.value[0]);
  return fd >= 0 && state.blocking_fd == fd + 1 && !AsksNotToBlock(shape, arguments) &&
         ++state.blocking_uses < kUsesOfAnswer;
}

// The unit ends, quietly. nullptr: the long way is due, as it is every work_ticks: samples
// that are to be flushed can wait for that.
[[gnu::always_inline]] inline ThreadState* EnterQuickly(const WaitSpec& spec,
                                                        const CallArguments& arguments,
                                                        const CallPlace& place) {
  ThreadState* state = KnownThread();
  if (state == nullptr || !IsAtItsHead(*state, CurrentPlan(), place) ||
      state->head_call != static_cast<uint32_t>(spec.call) || state->odd.in_runtime ||
      !SurelyBlocks(*state, spec.shape, arguments)) {
    return nullptr;
  }
  const uint64_t now = ReadTicks();
  return now < state->work_ticks && WaitQuietly(*state, now) ? state : nullptr;
}

// The next one begins. A signal's handler may have been in between, and be in a loop
// of its own now: then nothing begins.
[[gnu::always_inline]] inline void LeaveQuickly(ThreadState& state, const WaitSpec& spec,
                                                const CallArguments& arguments,
                                                const CallPlace& place, long result) {
  const uint32_t ready = ReadyEvents(spec, result);
  const LoadedPlan* plan = CurrentPlan();
  if (ready == 0) {
    if (IsFdShape(spec.shape)) state.blocking_fd = 0;
    if (state.odd.follows && plan != nullptr) FollowIfDue(state, *plan, {}, 0);
    return;
  }
  if (plan == nullptr) return;
  if (!IsAtItsHead(state, plan, place)) {
    if (state.plan == plan) return;
    return LeaveUnderNewPlan(state, *plan, static_cast<uint32_t>(spec.call), place, ready);
  }
  const uint64_t now = ReadTicks();
  const ReadyList list = ReadyListOf(spec, arguments, ready);
  if (state.odd.Any() || state.unread_ticks >= state.read_after_ticks ||
      now >= state.clocks_until_ticks || BeginsWithOutput(list)) {
    return LeaveHead(state, place, list.events, ready);
  }
  state.unread_from_ticks = now;
  BeginIteration(state, ready, now);
}

}  // namespace culprit::guard::runtime
