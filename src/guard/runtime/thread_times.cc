// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/thread_times.h"

#include <time.h>

#include "guard/runtime/raw_syscall.h"
#include "guard/runtime/unit_clock.h"

namespace culprit::guard::runtime {
namespace {

std::atomic<bool> g_sealed;

// To ask whether the descriptor still is ours is a third of what a reading costs. Of another
// file nothing is changed by it, and what comes would not look like this.
constexpr uint32_t kReadingsUnasked = 15;

bool ParseNumber(const char*& at, const char* end, char behind, uint64_t& value) {
  const char* const first = at;
  value = 0;
  for (; at < end && *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  return at != first && at < end && *at++ == behind;
}

// "run_ns wait_ns timeslices\n", all of it.
bool ParseRunDelay(const char* text, long size, uint64_t& delay_ns) {
  const char* const end = text + (size > 0 ? size : 0);
  uint64_t run_ns = 0;
  uint64_t wait_ns = 0;
  uint64_t slices = 0;
  if (!ParseNumber(text, end, ' ', run_ns) || !ParseNumber(text, end, ' ', wait_ns) ||
      !ParseNumber(text, end, '\n', slices) || text != end) {
    return false;
  }
  delay_ns = wait_ns;
  return true;
}

bool ReadSchedstat(const ThreadState& state, uint64_t& delay_ns) {
  char text[96];
  const long got = RawPread(state.schedstat.fd(), text, sizeof(text), 0);
  return ParseRunDelay(text, got, delay_ns);
}

void ReadRunDelay(ThreadState& state, uint64_t& delay_ns) {
  if (state.schedstat.held() && state.readings_unasked < kReadingsUnasked) {
    ++state.readings_unasked;
    if (ReadSchedstat(state, delay_ns)) return;
  }
  state.readings_unasked = 0;
  if (state.schedstat.IsOurs() ||
      state.schedstat.Open(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY)) {
    ReadSchedstat(state, delay_ns);
  }
}

}  // namespace

void ReadThreadTimes(ThreadState& state, ThreadTimes& times) {
  times.read_ticks = ReadTicks();
  times.read_ns = MonotonicNs();
  if (AreSystemCallsSealed()) return;
  ReadRunDelay(state, times.run_delay_ns);
  timespec cpu = {};
  if (RawSyscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, Word(&cpu)) == 0) {
    times.cpu_ns =
        static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec);
  }
}

void SealSystemCalls() { g_sealed.store(true); }

bool AreSystemCallsSealed() { return g_sealed.load(std::memory_order_relaxed); }

}  // namespace culprit::guard::runtime
