// SPDX-License-Identifier: Apache-2.0
#include "record/remote_stack.h"

#include <sys/uio.h>

#include "record/bpf/records.h"

namespace culprit::record {

// arm64 and x86-64 agree: a frame pointer points to the caller's frame pointer,
// the return address stands above it, and frames lie ever higher.
std::vector<uint64_t> ReadRemoteStack(int64_t tid, uint64_t program_counter,
                                      uint64_t frame_pointer) {
  std::vector<uint64_t> addresses = {program_counter};
  while (addresses.size() < kMaxStackFrames && frame_pointer != 0 && frame_pointer % 8 == 0) {
    uint64_t frame[2] = {};
    iovec local = {.iov_base = frame, .iov_len = sizeof(frame)};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is an address of another process
    iovec remote = {.iov_base = reinterpret_cast<void*>(frame_pointer), .iov_len = sizeof(frame)};
    if (process_vm_readv(static_cast<pid_t>(tid), &local, 1, &remote, 1, 0) != sizeof(frame)) break;
    if (frame[1] == 0) break;
    addresses.push_back(frame[1]);
    if (frame[0] <= frame_pointer) break;
    frame_pointer = frame[0];
  }
  return addresses;
}

}  // namespace culprit::record
