// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.h"

namespace culprit {
namespace {

bool IsHarmless(char c) {
  constexpr std::string_view kSigns = "_./:=@%+,-";
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || kSigns.find(c) != std::string_view::npos;
}

}  // namespace

std::string ShellWord(std::string_view word) {
  bool harmless = !word.empty();
  for (const char c : word) harmless = harmless && IsHarmless(c);
  if (harmless) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    // Between such quotes only the quote itself means something.
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace culprit
