// SPDX-License-Identifier: Apache-2.0
//
// Memory by its address. Addresses come from ELF tables and the kernel as
// numbers; this is the one place where they become pointers.
#pragma once

#include <cstdint>

namespace culprit::guard::runtime {

inline uint8_t* BytesAt(uint64_t address) {
  // What is lost to the optimizer does not matter outside hot paths.
  return reinterpret_cast<uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace culprit::guard::runtime
