// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/thread_times.h"

#include <time.h>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

std::atomic<bool> g_sealed;

// "run_ns wait_ns timeslices\n"
bool ParseRunDelay(const char* text, long size, uint64_t& delay_ns) {
  long at = 0;
  while (at < size && text[at] != ' ') ++at;
  ++at;
  uint64_t value = 0;
  const long first = at;
  for (; at < size && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + static_cast<uint64_t>(text[at] - '0');
  }
  if (at == first || at >= size || text[at] != ' ') return false;
  delay_ns = value;
  return true;
}

bool EnsureSchedstat(ThreadState& state) {
  if (state.schedstat.IsOurs()) return true;
  return state.schedstat.Open(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY);
}

}  // namespace

void ReadThreadTimes(ThreadState& state, ThreadTimes& times) {
  times.read_ticks = ReadTicks();
  times.read_ns = MonotonicNs();
  if (AreSystemCallsSealed()) return;
  char text[96];
  if (EnsureSchedstat(state)) {
    const long got = RawPread(state.schedstat.fd(), text, sizeof(text), 0);
    ParseRunDelay(text, got, times.run_delay_ns);
  }
  timespec cpu = {};
  if (RawSyscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, Word(&cpu)) == 0) {
    times.cpu_ns =
        static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec);
  }
}

void SealSystemCalls() { g_sealed.store(true); }

bool AreSystemCallsSealed() { return g_sealed.load(std::memory_order_relaxed); }

}  // namespace culprit::guard::runtime
