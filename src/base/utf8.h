// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 out of hostile bytes. Names in traces may hold anything; what goes to a
// terminal, into JSON or into a database must be valid text. Overlong forms,
// surrogates and values beyond U+10FFFF are not valid. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace culprit {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

struct Utf8Character {
  size_t length = 1;  // bytes; 1 if not valid, so that a reader can go on
  char32_t code_point = 0;
  bool valid = false;
};

// The character at the front of `text`, which must not be empty.
Utf8Character DecodeUtf8(std::string_view text);
// The bytes after the first of a character.
inline bool IsUtf8Tail(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }
// The same text with each bad byte replaced by U+FFFD.
std::string ValidUtf8(std::string_view bytes);

}  // namespace culprit
