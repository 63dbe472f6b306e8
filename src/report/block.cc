// SPDX-License-Identifier: Apache-2.0
#include "report/block.h"

#include <algorithm>

#include "report/plain_text.h"

namespace culprit::report {

std::string Heading(std::string_view text, bool color) {
  return Styled(Style::kBold, PlainText(text), color) + "\n";
}

std::string Facts(const std::vector<Fact>& facts, bool color) {
  size_t widest = 0;
  for (const auto& [key, value] : facts) widest = std::max(widest, CodePoints(PlainText(key)));
  std::string text;
  for (const auto& [key, value] : facts) {
    const std::string plain = PlainText(key);
    text += "  " + Styled(Style::kDim, plain, color);
    if (!value.empty()) text += std::string(widest - CodePoints(plain) + 2, ' ') + PlainText(value);
    text += "\n";
  }
  return text;
}

std::string Note(std::string_view text, bool color) {
  return Styled(Style::kDim, PlainText(text), color) + "\n";
}

}  // namespace culprit::report
