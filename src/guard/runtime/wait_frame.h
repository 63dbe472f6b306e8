// SPDX-License-Identifier: Apache-2.0
//
// A wait call in progress: what the runtime does before and after it. The frame
// lies on the call's own stack. A call that is left by longjmp, by an exception
// or by cancellation never comes to LeaveWait: the next wait finds its frame dead.
//
// In guard mode a call that is no site of the plan costs one look into a hash. In
// training everything is logged; calls that the C library makes inside of its own
// calls (sleep and nanosleep) are part of the outer one.
#pragma once

#include <cstdint>

#include "guard/runtime/wait_shape.h"

struct epoll_event;

namespace culprit::guard::runtime {

// Where a detoured call was made.
struct CallPlace {
  uint64_t sp;    // stack pointer at entry of the call
  uint64_t site;  // return address
};

struct LoadedPlan;
struct SiteRule;
struct ThreadState;

struct WaitFrame {
  uint64_t liveness = 0;  // says that the frame is one
  CallPlace place = {};
  bool logged = false;  // kWaitEnter was: kWaitExit is due
  bool reads = false;   // a read that is no boundary
  uint64_t object = 0;
  const LoadedPlan* plan = nullptr;  // that it is the head of a loop by...
  const SiteRule* head = nullptr;    // ...with this rule
};

void EnterWait(WaitFrame& frame, const WaitSpec& spec, const CallArguments& arguments,
               const CallPlace& place);
void LeaveWait(WaitFrame& frame, const WaitSpec& spec, const CallArguments& arguments, long result);

// A wait that was entered quickly (quick_wait.h), at the head of the thread's loop,
// returns with ready events, and something is to be looked at. `events`: those of epoll;
// null: of another call.
void LeaveHead(ThreadState& state, const CallPlace& place, const epoll_event* events,
               uint32_t ready);

// The same under another plan than it was entered under.
void LeaveUnderNewPlan(ThreadState& state, const LoadedPlan& plan, uint32_t call,
                       const CallPlace& place, uint32_t ready);

// The stack pointer at entry of the function that this stands in.
#define CULPRIT_ENTRY_SP() \
  (reinterpret_cast<uint64_t>(__builtin_dwarf_cfa()) - culprit::guard::runtime::kCfaAboveEntry)
#if defined(__aarch64__)
inline constexpr uint64_t kCfaAboveEntry = 0;
#else
inline constexpr uint64_t kCfaAboveEntry = 8;
#endif

}  // namespace culprit::guard::runtime
