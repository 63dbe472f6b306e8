// SPDX-License-Identifier: Apache-2.0
//
// The runtime's two clocks. Ticks measure units: the CPU's counter where it runs
// at a constant rate (arm64: cntvct; x86-64: an invariant tsc), else nanoseconds.
// MonotonicNs is CLOCK_MONOTONIC, read through the kernel's vdso and never through
// the C library, whose functions are patched during training.
//
// PrepareClock once, before anything else; then any thread. Ticks cost 1 to 20
// ns, MonotonicNs 20 to 30.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

struct TickScale {
  uint64_t base_ticks = 0;
  uint64_t base_ns = 0;
  uint64_t ticks_mult = 0;  // ns = ticks * ticks_mult >> 32
  uint64_t ns_mult = 0;     // ticks = ns * ns_mult >> 32
  bool by_counter = false;
};

extern TickScale g_tick_scale;

void PrepareClock();
uint64_t MonotonicNs();

inline uint64_t ScaleBy32(uint64_t value, uint64_t mult) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(value) * mult >> 32;
  return product > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(product);
}
inline uint64_t NsOfTicks(uint64_t ticks) { return ScaleBy32(ticks, g_tick_scale.ticks_mult); }
inline uint64_t TicksOfNs(uint64_t ns) { return ScaleBy32(ns, g_tick_scale.ns_mult); }

inline uint64_t ReadTicks() {
#if defined(__aarch64__)
  uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  if (__builtin_expect(g_tick_scale.by_counter, 1)) return __builtin_ia32_rdtsc();
  return MonotonicNs();
#endif
}

}  // namespace culprit::guard::runtime
