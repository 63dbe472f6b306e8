// SPDX-License-Identifier: Apache-2.0
//
// The way from what runs at a patched entry (hook.h), which may use general
// registers only, to ordinary code and the C library: saves all vector registers
// whole (arm64: with those of SVE, predicates and FFR; x86-64: x87, MXCSR, SSE, AVX
// and AVX-512 as far as the processor has them), and on arm64 also the general ones
// that code compiled with guard_entry_flags preserves (x8-x15, x18). In streaming
// mode (SME) the function is not called at all: the first system call would end it.
// 0.6 to 9 KB of stack and some 30 ns.
//
// FindVectorState must have been called; until then only what every processor of
// the architecture has is saved.
#pragma once

#include <cstdint>

extern "C" __attribute__((visibility("hidden"))) void culprit_call_saving_vectors(
    void (*function)(void*), void* argument);
// arm64: bit 0 SVE, bit 1 SME; x86-64: bytes of the area of xsave, 0: there is none.
extern "C" __attribute__((visibility("hidden"))) uint32_t culprit_vector_state;

namespace culprit::guard::runtime {

// What the processor has to be saved.
void FindVectorState();

inline void CallSavingVectors(void (*function)(void*), void* argument) {
  culprit_call_saving_vectors(function, argument);
}

}  // namespace culprit::guard::runtime
