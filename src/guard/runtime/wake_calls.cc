// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "guard/runtime/detours.h"
#include "guard/runtime/thread_state.h"
#include "guard/runtime/training_log.h"
#include "guard/runtime/unit_clock.h"
#include "guard/runtime/wait_frame.h"
#include "guard/runtime/wait_question.h"

namespace culprit::guard::runtime {
namespace {

using wire::WakeCall;

struct WakeSpec {
  const char* name;
  WakeCall call;
};

constexpr WakeSpec kWakes[] = {
    {"pthread_cond_signal", WakeCall::kConditionSignal},
    {"pthread_cond_broadcast", WakeCall::kConditionBroadcast},
    {"cnd_signal", WakeCall::kConditionSignal},
    {"cnd_broadcast", WakeCall::kConditionBroadcast},
    {"sem_post", WakeCall::kSemaphore},
    {"write", WakeCall::kWrite},
    {"writev", WakeCall::kWrite},
    {"send", WakeCall::kWrite},
    {"sendto", WakeCall::kWrite},
    {"sendmsg", WakeCall::kWrite},
    {"eventfd_write", WakeCall::kWrite},
};
constexpr size_t kWakeCount = sizeof(kWakes) / sizeof(kWakes[0]);

uint64_t g_wake_originals[kWakeCount];
DetouredCall g_wake_calls[kWakeCount];

// Before the call: who is woken by it must not be seen to run first.
void LogWake(WakeCall call, long object_or_fd, const CallPlace& place) {
  if (LogsTimes()) return LogCallPlace(place.sp, place.site);
  ThreadState* state = IsTraining() ? ThisThread() : nullptr;
  if (state == nullptr || state->odd.in_runtime) return;
  auto object = static_cast<uint64_t>(object_or_fd);
  if (call == WakeCall::kWrite) {
    bool on_disk = false;
    bool wakes = false;
    object = ObjectOfFd(static_cast<int>(object_or_fd), on_disk, wakes);
    if (!wakes) return;
  }
  const uint64_t words[] = {LogWord(wire::LogKind::kWake, static_cast<uint64_t>(call), 0),
                            MonotonicNs(), object};
  AppendLog(*state, words, 3);
}

using AnyCall = long (*)(long, long, long, long, long, long);

template <size_t kIndex>
long WakeDetour(long a, long b, long c, long d, long e, long f) {
  LogWake(kWakes[kIndex].call, a,
          {CULPRIT_ENTRY_SP(), reinterpret_cast<uint64_t>(__builtin_return_address(0))});
  return OriginalAs<AnyCall>(g_wake_originals[kIndex])(a, b, c, d, e, f);
}

template <size_t... kIndexes>
void FillWakeCalls(std::index_sequence<kIndexes...>) {
  ((g_wake_calls[kIndexes] = {kWakes[kIndexes].name, CodeAddress(&WakeDetour<kIndexes>),
                              &g_wake_originals[kIndexes], DetouredCall::kTrainingOnly}),
   ...);
}

}  // namespace

std::span<const DetouredCall> WakeCalls() {
  FillWakeCalls(std::make_index_sequence<kWakeCount>());
  return g_wake_calls;
}

}  // namespace culprit::guard::runtime
