// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/training_entry.h"

#include "guard/runtime/thread_state.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/vector_state.h"

namespace culprit::guard::runtime {
namespace {

void AppendSlowly(void* word) { AppendEntrySlowly(*static_cast<const uint64_t*>(word)); }

__attribute__((noinline, cold)) void TakeSlowEntry(uint64_t word) {
  if (g_training.load(std::memory_order_relaxed)) CallSavingVectors(AppendSlowly, &word);
}

}  // namespace

std::atomic<bool> g_training;

void TrainingEntry(uint64_t word, uint64_t sp) {
  constexpr uint64_t kSpMask = 0xff'ffff'ffff;
  word |= sp >> 4 & kSpMask;
  uint64_t* const next = t_log.next;
  if (__builtin_expect(next >= t_log.end, 0)) return TakeSlowEntry(word);
  *next = word;
  t_log.next = next + 1;
}

}  // namespace culprit::guard::runtime
