// SPDX-License-Identifier: Apache-2.0
//
// What every wait of the program begins with in the runtime, together: behind a system
// call, or behind another process on the same CPU, none of it is near, and each line of
// the cache, and more so each page, that it is spread over has its price.
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/runtime/thread_state.h"

namespace culprit::guard::runtime {

inline constexpr uint32_t kMaxWaitCalls = 64;

struct alignas(64) NearWords {
  std::atomic<const LoadedPlan*> plan = nullptr;
  int64_t thread_offset = 0;               // of t_words from the thread pointer
  uint64_t originals[kMaxWaitCalls] = {};  // of wait_calls.cc; the most frequent come first
};
extern NearWords g_near;

// Before anything else.
void FindThreadWords();

// KnownThread, by what is near.
[[gnu::always_inline]] inline ThreadState* NearThread() {
  auto* words = reinterpret_cast<ThreadWords*>(static_cast<char*>(__builtin_thread_pointer()) +
                                               g_near.thread_offset);
  ThreadState* state = words->state;
  return state != nullptr && state->owner == words ? state : nullptr;
}

}  // namespace culprit::guard::runtime
