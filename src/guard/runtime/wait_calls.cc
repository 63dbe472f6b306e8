// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>

#include <string_view>
#include <utility>

#include "guard/runtime/detours.h"
#include "guard/runtime/near_code.h"
#include "guard/runtime/quick_wait.h"
#include "guard/runtime/wait_frame.h"
#include "guard/runtime/wait_shape.h"

namespace culprit::guard::runtime {
namespace {

using wire::WaitCall;

constexpr WaitSpec kWaits[] = {
    {"epoll_wait", WaitCall::kEpoll, WaitShape::kTimeoutMs3},
    {"epoll_pwait", WaitCall::kEpoll, WaitShape::kTimeoutMs3},
    {"epoll_pwait2", WaitCall::kEpoll, WaitShape::kTimespec3},
    {"poll", WaitCall::kPoll, WaitShape::kTimeoutMs2},
    {"__poll_chk", WaitCall::kPoll, WaitShape::kTimeoutMs2},
    {"ppoll", WaitCall::kPoll, WaitShape::kTimespec2},
    {"__ppoll_chk", WaitCall::kPoll, WaitShape::kTimespec2},
    {"select", WaitCall::kSelect, WaitShape::kTimeval4},
    {"pselect", WaitCall::kSelect, WaitShape::kTimespec4},
    {"accept", WaitCall::kAccept, WaitShape::kAccept},
    {"accept4", WaitCall::kAccept, WaitShape::kAccept},
    {"read", WaitCall::kRead, WaitShape::kRead},
    {"__read_chk", WaitCall::kRead, WaitShape::kRead},
    {"readv", WaitCall::kRead, WaitShape::kRead},
    {"recv", WaitCall::kReceive, WaitShape::kReceiveFlags3},
    {"__recv_chk", WaitCall::kReceive, WaitShape::kRead},
    {"recvfrom", WaitCall::kReceive, WaitShape::kReceiveFlags3},
    {"recvmsg", WaitCall::kReceive, WaitShape::kReceiveFlags2},
    {"recvmmsg", WaitCall::kReceive, WaitShape::kReceiveMany},
    {"pthread_cond_wait", WaitCall::kCondition, WaitShape::kCondition},
    {"pthread_cond_timedwait", WaitCall::kCondition, WaitShape::kConditionTimed},
    {"pthread_cond_clockwait", WaitCall::kCondition, WaitShape::kConditionTimed},
    {"cnd_wait", WaitCall::kCondition, WaitShape::kCondition},
    {"cnd_timedwait", WaitCall::kCondition, WaitShape::kConditionTimed},
    {"sem_wait", WaitCall::kSemaphore, WaitShape::kSemaphore},
    {"sem_timedwait", WaitCall::kSemaphore, WaitShape::kSemaphoreTimed},
    {"sem_clockwait", WaitCall::kSemaphore, WaitShape::kSemaphoreTimed},
    {"sleep", WaitCall::kSleep, WaitShape::kSleep},
    {"usleep", WaitCall::kSleep, WaitShape::kSleep},
    {"nanosleep", WaitCall::kSleep, WaitShape::kSleep},
    {"clock_nanosleep", WaitCall::kSleep, WaitShape::kSleep},
    {"pause", WaitCall::kSignal, WaitShape::kSignalAny},
    {"sigsuspend", WaitCall::kSignal, WaitShape::kSignalAny},
    {"sigwait", WaitCall::kSignal, WaitShape::kSignal},
    {"sigwaitinfo", WaitCall::kSignal, WaitShape::kSignal},
    {"sigtimedwait", WaitCall::kSignal, WaitShape::kTimespec2},
    {"wait", WaitCall::kChild, WaitShape::kChild},
    {"waitpid", WaitCall::kChild, WaitShape::kChildOptions2},
    {"wait3", WaitCall::kChild, WaitShape::kChild},
    {"wait4", WaitCall::kChild, WaitShape::kChildOptions2},
    {"waitid", WaitCall::kChild, WaitShape::kChildOptions3},
    {"io_getevents", WaitCall::kAio, WaitShape::kTimespec4},  // of libaio
};
constexpr size_t kWaitCount = sizeof(kWaits) / sizeof(kWaits[0]);

static_assert(kWaitCount <= kMaxWaitCalls);
DetouredCall g_wait_calls[kWaitCount];

// All of them take at most six integers and return one: one replacement fits all.
using AnyCall = long (*)(long, long, long, long, long, long);

// What is called for the detoured function. Where there is no system call of its own for it, the
// C library's epoll_wait is epoll_pwait without a mask, which would be detoured once more.
template <size_t kIndex>
[[gnu::always_inline]] inline AnyCall OriginalOf([[maybe_unused]] long& mask) {
#if !defined(SYS_epoll_wait)
  static_assert(kWaits[0].name == std::string_view("epoll_wait"));
  static_assert(kWaits[1].name == std::string_view("epoll_pwait"));
  if (kIndex == 0 && g_near.originals[1] != 0) {
    mask = 0;
    return OriginalAs<AnyCall>(g_near.originals[1]);
  }
#endif
  return OriginalAs<AnyCall>(g_near.originals[kIndex]);
}

__attribute__((noinline)) long WaitTheLongWay(const WaitSpec& spec, const CallPlace& place,
                                              const CallArguments& arguments, AnyCall original) {
  WaitFrame frame;
  EnterWait(frame, spec, arguments, place);
  const long* value = arguments.value;
  const long result = original(value[0], value[1], value[2], value[3], value[4], value[5]);
  LeaveWait(frame, spec, arguments, result);
  return result;
}

template <size_t kIndex>
[[gnu::always_inline]] inline long Wait(long a, long b, long c, long d, long e, long f) {
  constexpr WaitSpec kSpec = kWaits[kIndex];
  const AnyCall original = OriginalOf<kIndex>(e);
  const CallPlace place = {CULPRIT_ENTRY_SP(),
                           reinterpret_cast<uint64_t>(__builtin_return_address(0))};
  const CallArguments arguments = {{a, b, c, d, e, f}};
  ThreadState* state = NearThread();
  const WaitWay way = EnterQuickly(state, kSpec, arguments, place);
  if (way == WaitWay::kForeign) return original(a, b, c, d, e, f);
  if (way == WaitWay::kQuick) {
    const wire::UnitSlot* slot = state->slot;
    const long result = original(a, b, c, d, e, f);
    FetchUnit(state, slot);
    if (const uint32_t ready = ReadyEvents(kSpec, result); ready != 0) {
      LeaveQuickly(*state, static_cast<uint32_t>(kSpec.call), place,
                   ReadyListOf(kSpec, arguments, ready).events, ready);
    } else {
      LeaveWithNothing(*state, kSpec.shape);
    }
    return result;
  }
  return WaitTheLongWay(kWaits[kIndex], place, arguments, original);
}

template <size_t kIndex>
long WaitDetour(long a, long b, long c, long d, long e, long f) {
  return Wait<kIndex>(a, b, c, d, e, f);
}
// Most servers have no other.
template <>
CULPRIT_NEAR_CODE_BEGIN long WaitDetour<0>(long a, long b, long c, long d, long e, long f) {
  return Wait<0>(a, b, c, d, e, f);
}

template <size_t... kIndexes>
void FillWaitCalls(std::index_sequence<kIndexes...>) {
  ((g_wait_calls[kIndexes] = {kWaits[kIndexes].name, CodeAddress(&WaitDetour<kIndexes>),
                              &g_near.originals[kIndexes],
                              static_cast<uint32_t>(kWaits[kIndexes].call)}),
   ...);
}

}  // namespace

std::span<const DetouredCall> WaitCalls() {
  FillWaitCalls(std::make_index_sequence<kWaitCount>());
  return g_wait_calls;
}

}  // namespace culprit::guard::runtime
