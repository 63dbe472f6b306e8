// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdint>

namespace culprit {

Utf8Character DecodeUtf8(std::string_view text) {
  const auto first = static_cast<uint8_t>(text.front());
  if (first < 0x80) return {.length = 1, .code_point = first, .valid = true};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  char32_t code_point = first & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!IsUtf8Tail(text[i])) return {};
    code_point = code_point << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
  }
  const char32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < least || code_point > 0x10ffff || surrogate) return {};
  return {.length = length, .code_point = code_point, .valid = true};
}

std::string ValidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Character at = DecodeUtf8(bytes);
    text += at.valid ? bytes.substr(0, at.length) : kReplacementCharacter;
    bytes.remove_prefix(at.length);
  }
  return text;
}

}  // namespace culprit
