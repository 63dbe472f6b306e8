// SPDX-License-Identifier: Apache-2.0
//
// A number of 2, 4 or 8 bytes, of either byte order, anywhere in memory.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace culprit::import_ {

template <class T>
T LoadWhole(const uint8_t* at, bool big_endian) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if (big_endian == (std::endian::native == std::endian::big)) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  return static_cast<T>(__builtin_bswap64(value));
}

}  // namespace culprit::import_
