// SPDX-License-Identifier: Apache-2.0
//
// The way from what runs at a patched entry (hook.h), which may use general
// registers only, to ordinary code: saves the vector registers, and on arm64 also
// the general ones that code compiled with kLeanFlags preserves (x8-x15, x18).
// About 600 bytes of stack and 30 ns; x86-64: also the state of the x87 and MXCSR,
// and code called so must not use AVX (it is compiled for the baseline).
#pragma once

extern "C" __attribute__((visibility("hidden"))) void culprit_call_saving_vectors(
    void (*function)(void*), void* argument);

namespace culprit::guard::runtime {

inline void CallSavingVectors(void (*function)(void*), void* argument) {
  culprit_call_saving_vectors(function, argument);
}

}  // namespace culprit::guard::runtime
