// SPDX-License-Identifier: Apache-2.0
//
// What a call of the C library asks of the kernel, as far as the system must be asked
// for that: may it block, what does it wait for, how many bytes were read. Looks at
// descriptors by raw system calls; never touches errno.
#pragma once

#include <cstdint>

#include "guard/runtime/wait_shape.h"

namespace culprit::guard::runtime {

struct WaitQuestion {
  bool blocks = true;
  bool has_timeout = false;
  bool of_interest = true;  // false: reads a file on disk
  bool is_read = false;
  uint64_t object = 0;
};

bool MayBlock(const WaitSpec& spec, const CallArguments& arguments);
WaitQuestion AskAll(const WaitSpec& spec, const CallArguments& arguments);

uint64_t BytesRead(const WaitSpec& spec, const CallArguments& arguments, long result);

// wire::kObjectFd. `wakes`: writing to it wakes a reader within this machine
// (pipe, eventfd, local socket).
uint64_t ObjectOfFd(int fd, bool& on_disk, bool& wakes);

}  // namespace culprit::guard::runtime
