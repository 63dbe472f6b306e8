// SPDX-License-Identifier: Apache-2.0
//
// The calls of the C library that the runtime takes part in, each a line in one
// of three tables: waits (wait_calls.cc), wakes (wake_calls.cc), and what makes
// or ends processes (process_calls.cc). A replacement calls the original with
// what it was given and returns what that returned, with its errno; cancellation
// and longjmp pass through it.
//
// In training all of them are detoured; with a guard plan only the waits that it
// has sites for, and the process calls. Under the session's lock.
#pragma once

#include <cstdint>
#include <span>

#include "guard/runtime/loaded_plan.h"

namespace culprit::guard::runtime {

struct DetouredCall {
  static constexpr uint32_t kAlways = 0;
  static constexpr uint32_t kTrainingOnly = 63;
  const char* name;
  uint64_t replacement;
  uint64_t* original;
  uint32_t use;  // a WaitCall, kAlways, kTrainingOnly
};

// Each table, filled at start.
std::span<const DetouredCall> WaitCalls();
std::span<const DetouredCall> WakeCalls();
std::span<const DetouredCall> ProcessCalls();

// Looks the calls up in the C library. False: it is none that is known.
bool FindDetouredCalls();

// Puts those in force that the plan needs and takes away the others.
// Returns how many are.
uint32_t SetDetours(const LoadedPlan& plan);

// They were all removed with everything else.
void ForgetDetours();

template <class T>
uint64_t CodeAddress(T* function) {
  return reinterpret_cast<uint64_t>(reinterpret_cast<void*>(function));
}

// The original behind a detour, to be called.
template <class Function>
Function OriginalAs(uint64_t address) {
  return reinterpret_cast<Function>(address);  // NOLINT(performance-no-int-to-ptr): from Patcher
}

}  // namespace culprit::guard::runtime
