// SPDX-License-Identifier: Apache-2.0
//
// MixHash: one step of a hash over integers, for tables that compare what they
// find. The same on every machine.
#pragma once

#include <cstdint>

namespace culprit::mine {

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ (value + 1)) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29U);
}

}  // namespace culprit::mine
