// SPDX-License-Identifier: Apache-2.0
//
// The memory functions that compilers call on their own, for the injected library
// alone: those of the C library are patched like all its functions, and what the
// runtime does must neither be logged as the program's doing nor enter itself.
// Hidden: the program keeps its own. Simple, since nothing large is copied while
// the program waits. Compiled so that no loop here becomes a call of itself.
#include <cstddef>
#include <cstdint>

#define CULPRIT_HIDDEN extern "C" __attribute__((visibility("hidden")))

CULPRIT_HIDDEN void* memcpy(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  for (; size >= 8; size -= 8, out += 8, in += 8) {
    uint64_t word = 0;
    __builtin_memcpy(&word, in, 8);
    __builtin_memcpy(out, &word, 8);
  }
  while (size-- > 0) *out++ = *in++;
  return to;
}

CULPRIT_HIDDEN void* memmove(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  if (out <= in || out >= in + size) return memcpy(to, from, size);
  while (size-- > 0) out[size] = in[size];
  return to;
}

CULPRIT_HIDDEN void* memset(void* to, int value, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  while (size-- > 0) *out++ = static_cast<uint8_t>(value);
  return to;
}

CULPRIT_HIDDEN int memcmp(const void* a, const void* b, size_t size) {
  const auto* x = static_cast<const uint8_t*>(a);
  const auto* y = static_cast<const uint8_t*>(b);
  for (size_t i = 0; i < size; ++i) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}

CULPRIT_HIDDEN size_t strlen(const char* text) {
  size_t size = 0;
  while (text[size] != 0) ++size;
  return size;
}

CULPRIT_HIDDEN int strcmp(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<uint8_t>(*a) - static_cast<uint8_t>(*b);
}
