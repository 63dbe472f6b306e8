// SPDX-License-Identifier: Apache-2.0
//
// Where the other threads of this process are: none, all stopped by a tracer (a
// ptrace stop; the tracer alone can end it) with known program counters, or at
// least one running. A blocked thread counts as running, because it may wake up
// at any moment. Reads /proc/self/task: about 20 us a thread.
#pragma once

#include <cstdint>

#include "guard/runtime/mapped_array.h"

namespace culprit::guard::runtime {

struct OtherThreads {
  enum class State : uint32_t { kNone, kStopped, kRunning };
  State state = State::kRunning;
  MappedArray<uint64_t> program_counters;  // kStopped: ascending
  // Does one stand behind `begin` and before `end`?
  bool AnyWithin(uint64_t begin, uint64_t end) const;
};

OtherThreads LookAtOtherThreads();

}  // namespace culprit::guard::runtime
