// SPDX-License-Identifier: Apache-2.0
//
// Mask: a set of at most 64 * W items as bits, by value.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace culprit::mine {

template <size_t W>
struct Mask {
  std::array<uint64_t, W> words = {};

  auto operator<=>(const Mask&) const = default;

  bool Has(size_t bit) const { return (words[bit / 64] >> (bit % 64) & 1U) != 0; }
  void Set(size_t bit) { words[bit / 64] |= uint64_t{1} << (bit % 64); }
  void Reset(size_t bit) { words[bit / 64] &= ~(uint64_t{1} << (bit % 64)); }
  bool Empty() const {
    uint64_t any = 0;
    for (const uint64_t word : words) any |= word;
    return any == 0;
  }
  bool IsIn(const Mask& other) const {
    uint64_t beyond = 0;
    for (size_t w = 0; w < W; ++w) beyond |= words[w] & ~other.words[w];
    return beyond == 0;
  }
  friend Mask operator&(Mask a, const Mask& b) {
    for (size_t w = 0; w < W; ++w) a.words[w] &= b.words[w];
    return a;
  }
  friend Mask operator|(Mask a, const Mask& b) {
    for (size_t w = 0; w < W; ++w) a.words[w] |= b.words[w];
    return a;
  }
  // Calls visit(bit) in ascending order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t w = 0; w < W; ++w) {
      for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
        visit(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
  }
};

}  // namespace culprit::mine
