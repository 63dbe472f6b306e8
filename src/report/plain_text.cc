// SPDX-License-Identifier: Apache-2.0
#include "report/plain_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace culprit::report {
namespace {

// C0 and C1 controls, the line and paragraph separators, and the marks that
// turn the writing direction: each can make a line read as something else.
bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
}

}  // namespace

std::string PlainText(std::string_view bytes) {
  std::string plain;
  plain.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Character at = DecodeUtf8(bytes);
    if (!at.valid) {
      plain += kReplacementCharacter;
    } else if (IsControl(at.code_point)) {
      plain += '?';
    } else {
      plain += bytes.substr(0, at.length);
    }
    bytes.remove_prefix(at.length);
  }
  return plain;
}

size_t CodePoints(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), IsUtf8Tail));
}

size_t CodePointOffset(std::string_view text, size_t index) {
  size_t offset = 0;
  while (offset < text.size() && index > 0) {
    ++offset;
    while (offset < text.size() && IsUtf8Tail(text[offset])) ++offset;
    --index;
  }
  return offset;
}

std::string Styled(Style style, std::string_view text, bool color) {
  if (!color || text.empty()) return std::string(text);
  return std::string(style == Style::kBold ? "\033[1m" : "\033[2m") + std::string(text) + "\033[0m";
}

}  // namespace culprit::report
