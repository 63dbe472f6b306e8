// SPDX-License-Identifier: Apache-2.0
//
// How many bits of a word are set, in hot loops. std::popcount is a call of libgcc's
// where a build may not count on the instruction, as on the least x86-64.
#pragma once

#include <bit>
#include <cstdint>

namespace culprit {

inline uint64_t CountOnes(uint64_t word) {
#if defined(__x86_64__) && !defined(__POPCNT__)
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return word * 0x0101010101010101 >> 56;
#else
  return static_cast<uint64_t>(std::popcount(word));
#endif
}

}  // namespace culprit
