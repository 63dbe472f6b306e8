// SPDX-License-Identifier: Apache-2.0
//
// What a call of the C library asks of the kernel: may it block, has it a
// timeout, what does it wait for; and what its result means: how many events are
// ready, how many bytes were read. Pure but for looking at descriptors by raw
// system calls; never touches errno.
#pragma once

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

// The call itself says that it does not want to wait, whatever its descriptor says.
bool AsksNotToBlock(const WaitSpec& spec, const CallArguments& arguments);

struct WaitQuestion {
  bool blocks = true;
  bool has_timeout = false;
  bool of_interest = true;  // false: reads a file on disk
  bool is_read = false;
  uint64_t object = 0;
};

bool MayBlock(const WaitSpec& spec, const CallArguments& arguments);
WaitQuestion AskAll(const WaitSpec& spec, const CallArguments& arguments);

// 0: timed out, failed, or slept.
uint32_t ReadyEvents(const WaitSpec& spec, long result);
uint64_t BytesRead(const WaitSpec& spec, const CallArguments& arguments, long result);

// wire::kObjectFd. `wakes`: writing to it wakes a reader within this machine
// (pipe, eventfd, local socket).
uint64_t ObjectOfFd(int fd, bool& on_disk, bool& wakes);

}  // namespace culprit::guard::runtime
