// SPDX-License-Identifier: Apache-2.0
//
// Outputs that trickle: a loop that is told again and again that one descriptor takes
// output, and each time gets rid of very little of it, answers slowly with units of
// which none is slow. What epoll returns to the loop's head is followed: a descriptor
// (by its event's data) that is ready for output and for nothing else in one iteration
// after the other, while the thread never sleeps, for longer than a unit like no type
// may take, trickles. It is told at its end, once; from a quarter of that time on the slot
// says so, for looks.
//
// That its units are short, as those of a long download are not, is the collector's to
// say. It is the first of the ready events when it begins to be followed, and among the
// first kFollowed later. poll and select are not followed.
//
// In the thread's own time. Without such a descriptor an iteration costs a look at
// its first event, which the program reads next.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "guard/runtime/thread_state.h"
#include "guard/runtime/wait_shape.h"

namespace culprit::guard::runtime {

// The events that a wait call of the head returned; none if it is another call.
struct ReadyList {
  const epoll_event* events = nullptr;
  uint32_t count = 0;
};

[[gnu::always_inline]] inline ReadyList FirstOf(const epoll_event* events, uint32_t ready) {
  if (events == nullptr) return {};
  return {events, ready < kFollowed ? ready : kFollowed};
}

[[gnu::always_inline]] inline ReadyList ReadyListOf(const WaitSpec& spec,
                                                    const CallArguments& arguments,
                                                    uint32_t ready) {
  if (spec.call != wire::WaitCall::kEpoll) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument as its register held it
  return FirstOf(reinterpret_cast<const epoll_event*>(arguments.value[1]), ready);
}

[[gnu::always_inline]] inline bool IsOnlyOutput(const epoll_event& event) {
  return (event.events & (EPOLLIN | EPOLLPRI | EPOLLOUT)) == EPOLLOUT;
}

// What is to be followed begins with an output that comes first; where several events are
// ready all the time each of them does, now and then.
[[gnu::always_inline]] inline bool BeginsWithOutput(const ReadyList& list) {
  return list.count != 0 && IsOnlyOutput(list.events[0]);
}

// The head's wait returned, with `ready` events in all; what it waited for is not yet
// begun. ThreadState::unread_from_ticks is the end of the iteration before.
void FollowOutputs(ThreadState& state, const LoadedPlan& plan, const ReadyList& list,
                   uint32_t ready);

inline void FollowIfDue(ThreadState& state, const LoadedPlan& plan, const ReadyList& list,
                        uint32_t ready) {
  const bool due = state.odd.follows || BeginsWithOutput(list);
  if (due && state.plan == &plan) FollowOutputs(state, plan, list, ready);
}

// Whatever was followed is no longer.
void ForgetOutputs(ThreadState& state);

}  // namespace culprit::guard::runtime
