// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/unit_clock.h"

#include <dlfcn.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "guard/runtime/raw_syscall.h"

namespace culprit::guard::runtime {
namespace {

using VdsoClock = int (*)(clockid_t, timespec*);

VdsoClock g_vdso_clock = nullptr;

VdsoClock FindVdsoClock() {
  void* vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (vdso == nullptr) return nullptr;
  void* found = dlsym(vdso, "__kernel_clock_gettime");
  if (found == nullptr) found = dlsym(vdso, "__vdso_clock_gettime");
  dlclose(vdso);
  return reinterpret_cast<VdsoClock>(found);
}

#if defined(__x86_64__)
bool HasInvariantTsc() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
}

// Ticks that pass in 2 ms: right to some 50 ppm, enough for thresholds. Absolute
// times never come from it.
uint64_t MeasureTicksASecond() {
  constexpr uint64_t kSpanNs = 2'000'000;
  const uint64_t begin_ns = MonotonicNs();
  const uint64_t begin = __builtin_ia32_rdtsc();
  uint64_t now_ns = begin_ns;
  while (now_ns - begin_ns < kSpanNs) now_ns = MonotonicNs();
  const uint64_t ticks = __builtin_ia32_rdtsc() - begin;
  return ticks * 1'000'000'000 / (now_ns - begin_ns);
}
#endif

}  // namespace

TickScale g_tick_scale;

uint64_t MonotonicNs() {
  timespec now = {};
  if (g_vdso_clock == nullptr || g_vdso_clock(CLOCK_MONOTONIC, &now) != 0) {
    RawSyscall(SYS_clock_gettime, CLOCK_MONOTONIC, Word(&now));
  }
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void PrepareClock() {
  g_vdso_clock = FindVdsoClock();
  uint64_t ticks_a_second = 1'000'000'000;
#if defined(__aarch64__)
  asm("mrs %0, cntfrq_el0" : "=r"(ticks_a_second));
  g_tick_scale.by_counter = true;
#else
  g_tick_scale.by_counter = HasInvariantTsc();
  if (g_tick_scale.by_counter) ticks_a_second = MeasureTicksASecond();
#endif
  if (ticks_a_second == 0) ticks_a_second = 1'000'000'000;
  __extension__ using Wide = unsigned __int128;
  const Wide one = static_cast<Wide>(1) << 32;
  g_tick_scale.ticks_mult = static_cast<uint64_t>(one * 1'000'000'000 / ticks_a_second);
  g_tick_scale.ns_mult = static_cast<uint64_t>(one * ticks_a_second / 1'000'000'000);
  g_tick_scale.base_ns = MonotonicNs();
  g_tick_scale.base_ticks = ReadTicks();
}

}  // namespace culprit::guard::runtime
