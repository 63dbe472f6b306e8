// SPDX-License-Identifier: Apache-2.0
//
// What the arguments and the result of a wait call say by themselves: its timeout,
// its flags, how many events are ready. Everything is inlined, so that in a detour,
// where the shape is a constant, little is left of it. Pure.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <cstdint>

#include "guard/runtime/wire.h"

namespace culprit::guard::runtime {

// Which argument means what.
enum class WaitShape : uint8_t {
  kTimeoutMs2,     // poll
  kTimeoutMs3,     // epoll_wait, epoll_pwait
  kTimespec2,      // ppoll, sigtimedwait
  kTimespec3,      // epoll_pwait2
  kTimespec4,      // pselect, io_getevents
  kTimeval4,       // select
  kAccept,         // descriptor
  kRead,           // descriptor
  kReceiveFlags3,  // descriptor, ..., flags: recv, recvfrom, recvmmsg
  kReceiveFlags2,  // recvmsg
  kReceiveMany,    // recvmmsg
  kCondition,      // 0 or an error; object 0
  kConditionTimed,
  kSemaphore,
  kSemaphoreTimed,
  kSleep,
  kSignal,
  kSignalAny,      // pause, sigsuspend: return when a signal came
  kChild,          // wait
  kChildOptions2,  // waitpid, wait3
  kChildOptions3,  // waitid
};

struct WaitSpec {
  const char* name;
  wire::WaitCall call;
  WaitShape shape;
};

struct CallArguments {
  long value[6];
};

enum class Timeout { kNone, kZero, kFinite };

[[gnu::always_inline]] inline Timeout TimeoutOfMs(long ms) {
  const int value = static_cast<int>(ms);
  if (value < 0) return Timeout::kNone;
  return value == 0 ? Timeout::kZero : Timeout::kFinite;
}

[[gnu::always_inline]] inline Timeout TimeoutOfParts(long pointer) {
  if (pointer == 0) return Timeout::kNone;
  // timespec and timeval are two longs alike.
  static_assert(sizeof(timeval) == sizeof(timespec));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an argument as its register held it
  const auto* parts = reinterpret_cast<const timespec*>(pointer);
  return parts->tv_sec == 0 && parts->tv_nsec == 0 ? Timeout::kZero : Timeout::kFinite;
}

[[gnu::always_inline]] inline Timeout TimeoutOf(WaitShape shape, const CallArguments& arguments) {
  const long* value = arguments.value;
  switch (shape) {
    case WaitShape::kTimeoutMs2:
      return TimeoutOfMs(value[2]);
    case WaitShape::kTimeoutMs3:
      return TimeoutOfMs(value[3]);
    case WaitShape::kTimespec2:
      return TimeoutOfParts(value[2]);
    case WaitShape::kTimespec3:
      return TimeoutOfParts(value[3]);
    case WaitShape::kTimespec4:
    case WaitShape::kTimeval4:
      return TimeoutOfParts(value[4]);
    case WaitShape::kConditionTimed:
    case WaitShape::kSemaphoreTimed:
    case WaitShape::kSleep:
      return Timeout::kFinite;
    case WaitShape::kChildOptions2:
      return (value[2] & WNOHANG) != 0 ? Timeout::kZero : Timeout::kNone;
    case WaitShape::kChildOptions3:
      return (value[3] & WNOHANG) != 0 ? Timeout::kZero : Timeout::kNone;
    default:
      return Timeout::kNone;
  }
}

[[gnu::always_inline]] inline bool IsFdShape(WaitShape shape) {
  switch (shape) {
    case WaitShape::kAccept:
    case WaitShape::kRead:
    case WaitShape::kReceiveFlags2:
    case WaitShape::kReceiveFlags3:
    case WaitShape::kReceiveMany:
      return true;
    default:
      return false;
  }
}

[[gnu::always_inline]] inline long FlagsOf(WaitShape shape, const CallArguments& arguments) {
  if (shape == WaitShape::kReceiveFlags2) return arguments.value[2];
  if (shape == WaitShape::kReceiveFlags3 || shape == WaitShape::kReceiveMany) {
    return arguments.value[3];
  }
  return 0;
}

// The call itself says that it does not want to wait, whatever its descriptor says.
[[gnu::always_inline]] inline bool AsksNotToBlock(WaitShape shape, const CallArguments& arguments) {
  return (FlagsOf(shape, arguments) & MSG_DONTWAIT) != 0;
}

// 0: timed out, failed, or slept.
[[gnu::always_inline]] inline uint32_t ReadyEvents(const WaitSpec& spec, long result) {
  const int value = static_cast<int>(result);
  switch (spec.shape) {
    case WaitShape::kTimeoutMs2:
    case WaitShape::kTimeoutMs3:
    case WaitShape::kTimespec3:
    case WaitShape::kTimespec4:
    case WaitShape::kTimeval4:
    case WaitShape::kReceiveMany:
      return value > 0 ? static_cast<uint32_t>(value) : 0;
    case WaitShape::kTimespec2:
      // ppoll counts; sigtimedwait gives a signal's number.
      if (spec.call == wire::WaitCall::kSignal) return value > 0 ? 1 : 0;
      return value > 0 ? static_cast<uint32_t>(value) : 0;
    case WaitShape::kAccept:
      return value >= 0 ? 1 : 0;
    case WaitShape::kRead:
    case WaitShape::kReceiveFlags2:
    case WaitShape::kReceiveFlags3:
      return result >= 0 ? 1 : 0;
    case WaitShape::kCondition:
    case WaitShape::kConditionTimed:
    case WaitShape::kSemaphore:
    case WaitShape::kSemaphoreTimed:
      return value == 0 ? 1 : 0;
    case WaitShape::kSleep:
      return 0;
    case WaitShape::kSignal:
      return value >= 0 ? 1 : 0;
    case WaitShape::kSignalAny:
      return 1;
    case WaitShape::kChild:
    case WaitShape::kChildOptions2:
      return value > 0 ? 1 : 0;
    case WaitShape::kChildOptions3:
      return value == 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace culprit::guard::runtime
