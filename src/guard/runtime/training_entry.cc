// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/training_entry.h"

#include "guard/runtime/thread_state.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/vector_state.h"

namespace culprit::guard::runtime {
namespace {

constexpr uint64_t kSpMask = 0xff'ffff'ffff;

void AppendSlowly(void* words) { AppendEntrySlowly(static_cast<const uint64_t*>(words)); }
void AppendTimed(void* words) { AppendTimedEntry(static_cast<const uint64_t*>(words)); }

__attribute__((noinline, cold)) void TakeSlowEntry(uint64_t word, uint64_t return_address) {
  uint64_t words[kEntryWords] = {word, return_address};
  if (g_training.load(std::memory_order_relaxed)) CallSavingVectors(AppendSlowly, words);
}

}  // namespace

std::atomic<bool> g_training;

void TrainingEntry(uint64_t word, uint64_t sp, uint64_t return_address) {
  word |= sp >> 4 & kSpMask;
  uint64_t* const next = t_log.next;
  if (__builtin_expect(t_log.end - next < kEntryWords, 0)) {
    return TakeSlowEntry(word, return_address);
  }
  next[0] = word;
  next[1] = return_address;
  t_log.next = next + kEntryWords;
}

void TimedTrainingEntry(uint64_t word, uint64_t sp, uint64_t return_address) {
  uint64_t words[kEntryWords] = {word | (sp >> 4 & kSpMask), return_address};
  if (g_training.load(std::memory_order_relaxed)) CallSavingVectors(AppendTimed, words);
}

}  // namespace culprit::guard::runtime
