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

[[gnu::always_inline]] inline uint32_t ForeignIndex(uint64_t site) {
  return (site >> 2 ^ site >> 8) % kForeignSites;
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

enum class WaitWay { kQuick, kForeign, kLong };

// kQuick: the unit ended, quietly. kForeign: the call is known to be no head by this plan. kLong:
// the long way is due, as it is every work_ticks: samples that are to be flushed can wait for that.
[[gnu::always_inline]] inline WaitWay EnterQuickly(ThreadState* state, const WaitSpec& spec,
                                                   const CallArguments& arguments,
                                                   const CallPlace& place) {
  const LoadedPlan* plan = CurrentPlan();
  if (state == nullptr || plan == nullptr || state->plan != plan) return WaitWay::kLong;
  if (!IsAtItsHead(*state, plan, place)) {
    const bool foreign = state->foreign_sites[ForeignIndex(place.site)] == place.site;
    return foreign ? WaitWay::kForeign : WaitWay::kLong;
  }
  if (state->head_call != static_cast<uint32_t>(spec.call) || state->odd.in_runtime ||
      !SurelyBlocks(*state, spec.shape, arguments)) {
    return WaitWay::kLong;
  }
  const uint64_t now = ReadTicks();
  return now < state->work_ticks && WaitQuietly(*state, now) ? WaitWay::kQuick : WaitWay::kLong;
}

// Behind a system call none of what a unit begins with is near: asked for at once, not one
// after the other.
[[gnu::always_inline]] inline void FetchUnit(const ThreadState* state, const wire::UnitSlot* slot) {
  asm volatile("" : "+r"(state), "+r"(slot));  // not before the call
  const auto* lines = reinterpret_cast<const char*>(state);
  __builtin_prefetch(lines, 1);
  __builtin_prefetch(lines + 64, 1);
  __builtin_prefetch(lines + 128, 1);
  const auto* shared = reinterpret_cast<const char*>(slot);
  __builtin_prefetch(shared, 1);
  __builtin_prefetch(shared + 64, 1);
}

// Nothing is ready.
[[gnu::always_inline]] inline void LeaveWithNothing(ThreadState& state, WaitShape shape) {
  const LoadedPlan* plan = CurrentPlan();
  if (IsFdShape(shape)) state.blocking_fd = 0;
  if (state.odd.follows && plan != nullptr) FollowIfDue(state, *plan, {}, 0);
}

// The next one begins. A signal's handler may have been in between, and be in a loop
// of its own now: then nothing begins. `events`: those of epoll; null: of another call. One
// function for all calls, so that they are short.
void LeaveQuickly(ThreadState& state, uint32_t call, CallPlace place, const epoll_event* events,
                  uint32_t ready);

}  // namespace culprit::guard::runtime
