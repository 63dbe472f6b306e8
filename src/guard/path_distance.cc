// SPDX-License-Identifier: Apache-2.0
#include "guard/path_distance.h"

#include <algorithm>
#include <bit>

namespace culprit::guard {

// Rows of the dynamic programme as bits (Hyyro's form): a zero at i says that the
// LCS grew between a[0..i) and a[0..i]. V' = (V + (V & M)) | (V & ~M), where M has
// the positions of the next symbol of b; the carry runs from word to word.
size_t LongestCommonSubsequence(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  if (a.empty() || b.empty()) return 0;
  const size_t words = (a.size() + 63) / 64;
  std::vector<uint64_t> rows(words, ~uint64_t{0});
  for (const uint32_t symbol : b) {
    uint64_t carry = 0;
    for (size_t word = 0; word < words; ++word) {
      uint64_t match = 0;
      const size_t end = std::min(a.size() - word * 64, size_t{64});
      for (size_t i = 0; i < end; ++i) {
        match |= static_cast<uint64_t>(a[word * 64 + i] == symbol ? 1 : 0) << i;
      }
      const uint64_t row = rows[word];
      const uint64_t hit = row & match;
      uint64_t sum = row + hit;
      const uint64_t overflow = sum < row ? 1 : 0;
      sum += carry;
      const uint64_t carried = sum < carry ? 1 : 0;
      carry = overflow | carried;
      rows[word] = sum | (row & ~match);
    }
  }
  size_t length = 0;
  for (size_t word = 0; word < words; ++word) {
    const size_t used = std::min(a.size() - word * 64, size_t{64});
    const uint64_t mask = used == 64 ? ~uint64_t{0} : (uint64_t{1} << used) - 1;
    length += static_cast<size_t>(std::popcount(~rows[word] & mask));
  }
  return length;
}

cluster::Fixed PathSimilarity(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  const uint64_t longer = std::max(a.size(), b.size());
  if (longer == 0) return cluster::kOne;
  return static_cast<cluster::Fixed>(LongestCommonSubsequence(a, b) * uint64_t{cluster::kOne} /
                                     longer);
}

}  // namespace culprit::guard
