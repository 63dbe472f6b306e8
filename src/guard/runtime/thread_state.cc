// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/thread_state.h"

#include <pthread.h>

#include <cerrno>

#include "guard/runtime/near_words.h"
#include "guard/runtime/process.h"
#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/sample_batch.h"
#include "guard/runtime/thread_times.h"
#include "guard/runtime/training_log.h"

namespace culprit::guard::runtime {
namespace {

// pthread_setspecific allocates memory for keys above the first 32: such a key is
// not used, and ended threads are found by looking.
constexpr pthread_key_t kFirstCostlyKey = 32;

pthread_key_t g_key = 0;
bool g_has_key = false;
AddressRange g_expected_stack;

void OnThreadEnd(void* value) {
  ThreadState* state = KnownThread();
  if (state == value && state != nullptr) ReleaseThread(*state);
}

bool IsGone(const ThreadState& state) {
  const uint32_t tid = state.tid.load(std::memory_order_acquire);
  return tid != 0 && RawSyscall(SYS_tgkill, RawGetPid(), tid, 0) == -ESRCH;
}

ThreadState* TakeState(uint32_t first, uint32_t end, uint32_t tid) {
  ThreadState* states = ThreadStates();
  for (uint32_t i = first; i < end; ++i) {
    uint32_t free = 0;
    if (states[i].tid.load(std::memory_order_relaxed) == 0 &&
        states[i].tid.compare_exchange_strong(free, tid)) {
      states[i].index = i;
      return &states[i];
    }
  }
  return nullptr;
}

ThreadState* FindState(uint32_t tid) {
  Process& process = ThisProcess();
  const uint32_t used = process.states_used.load();
  ThreadState* state = TakeState(0, used, tid);
  if (state == nullptr && used == wire::kMaxThreads) {
    ForEachThread([](ThreadState& other) {
      if (IsGone(other)) ReleaseThread(other);
    });
    return TakeState(0, used, tid);
  }
  if (state == nullptr) state = TakeState(used, wire::kMaxThreads, tid);
  if (state == nullptr) return nullptr;
  uint32_t seen = process.states_used.load();
  while (seen <= state->index &&
         !process.states_used.compare_exchange_weak(seen, state->index + 1)) {
  }
  return state;
}

}  // namespace

__thread ThreadWords t_words __attribute__((tls_model("initial-exec")));
__thread LogCursor t_log __attribute__((tls_model("initial-exec")));

// The session may begin before anything else is initialized.
constinit NearWords g_near;

void FindThreadWords() {
  g_near.thread_offset =
      reinterpret_cast<char*>(&t_words) - static_cast<char*>(__builtin_thread_pointer());
}

bool WatchThreadEnds() {
  if (g_has_key) return true;
  if (pthread_key_create(&g_key, OnThreadEnd) != 0) return false;
  g_has_key = g_key < kFirstCostlyKey;
  if (!g_has_key) pthread_key_delete(g_key);
  return g_has_key;
}

ThreadState* ThisThread() {
  if (ThreadState* known = KnownThread(); known != nullptr) return known;
  if (AreSystemCallsSealed()) return nullptr;
  ThreadState* state = FindState(static_cast<uint32_t>(RawGetTid()));
  t_log = {};
  t_words = {state, nullptr};
  if (state == nullptr) return nullptr;
  state->owner = &t_words;
  state->cursor = &t_log;
  state->stack = g_expected_stack;  // who is not on it will notice
  if (g_has_key) {
    state->odd.in_runtime = true;
    pthread_setspecific(g_key, state);
    state->odd.in_runtime = false;
  }
  return state;
}

void ForgetThreadAfterFork() {
  t_words = {};
  t_log = {};
}

void ExpectStack(const AddressRange& stack) { g_expected_stack = stack; }

void ReleaseThread(ThreadState& state) {
  const bool own = state.owner == &t_words;
  FlushSamples(state);
  EndLog(state);
  state.schedstat.Close();
  PublishUnits(state);
  if (wire::UnitSlot* slot = state.slot; slot != nullptr) {
    slot->begin_ticks = 0;
    slot->tid.store(0, std::memory_order_release);
  }
  if (own) ForgetThreadAfterFork();
  uint64_t* const log = state.log;
  const uint32_t index = state.index;
  auto* words = reinterpret_cast<uint64_t*>(&state);
  // All but the thread id, which is what gives the state free.
  for (size_t i = 1; i < sizeof(state) / sizeof(uint64_t); ++i) words[i] = 0;
  state.index = index;
  state.log = log;
  state.tid.store(0, std::memory_order_release);
}

}  // namespace culprit::guard::runtime
