// SPDX-License-Identifier: Apache-2.0
#include "guard/runtime/vector_state.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#else
#include <cpuid.h>
#endif

uint32_t culprit_vector_state = 0;

namespace culprit::guard::runtime {

#if defined(__aarch64__)

void FindVectorState() {
  constexpr unsigned long kSve = 1ul << 22;  // of AT_HWCAP
  constexpr unsigned long kSme = 1ul << 23;  // of AT_HWCAP2
  culprit_vector_state = ((getauxval(AT_HWCAP) & kSve) != 0 ? 1u : 0u) |
                         ((getauxval(AT_HWCAP2) & kSme) != 0 ? 2u : 0u);
}

#else

void FindVectorState() {
  constexpr unsigned kOsXsave = 1u << 27;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsXsave) == 0) return;
  // The size for all that the system has switched on; what is saved is a part of it.
  if (__get_cpuid_count(0xd, 0, &a, &b, &c, &d) == 0 || b < 576) return;
  culprit_vector_state = b;
}

#endif

}  // namespace culprit::guard::runtime
