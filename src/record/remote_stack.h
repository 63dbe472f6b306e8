// SPDX-License-Identifier: Apache-2.0
//
// The user stack of another thread that sleeps in the kernel, read from its
// memory along its frame pointers: for what is still waiting when a recording
// ends. Costs one system call a frame. The memory is another program's: nothing
// read from it is trusted.
#pragma once

#include <cstdint>
#include <vector>

namespace culprit::record {

// Leaf first; empty if its memory cannot be read.
std::vector<uint64_t> ReadRemoteStack(int64_t tid, uint64_t program_counter,
                                      uint64_t frame_pointer);

}  // namespace culprit::record
