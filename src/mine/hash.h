// SPDX-License-Identifier: Apache-2.0
//
// Hashes over integers, for tables that compare what they find. The same on
// every machine. HashItems runs in four chains side by side: one chain waits
// for its own multiplications.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mine/sequence_list.h"

namespace culprit::mine {

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ (value + 1)) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29U);
}

inline uint64_t HashItems(std::span<const Item> items) {
  std::array<uint64_t, 4> chains = {items.size(), 1, 2, 3};
  size_t i = 0;
  for (; i + 4 <= items.size(); i += 4) {
    for (size_t c = 0; c < 4; ++c) chains[c] = MixHash(chains[c], items[i + c]);
  }
  for (size_t c = 0; i < items.size(); ++i, ++c) chains[c] = MixHash(chains[c], items[i]);
  return MixHash(MixHash(chains[0], chains[1]), MixHash(chains[2], chains[3]));
}

}  // namespace culprit::mine
