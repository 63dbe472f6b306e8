// SPDX-License-Identifier: Apache-2.0
#include "import/ctf_lexer.h"

#include <algorithm>

#include "import/text_scan.h"

namespace culprit::import_ {
namespace {

bool IsWord(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
int DigitOf(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

CtfToken CtfLexer::Take(CtfToken::Kind kind, size_t length) {
  const CtfToken token = {.kind = kind, .text = text_.substr(at_, length), .offset = at_};
  at_ += token.text.size();
  return token;
}

void CtfLexer::SkipPast(std::string_view mark) {
  const size_t found = text_.find(mark, at_);
  at_ = found == std::string_view::npos ? text_.size() : found + mark.size();
}

void CtfLexer::SkipBlank() {
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_, 2);
    const char c = rest[0];
    if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') {
      ++at_;
    } else if (rest == "/*") {
      SkipPast("*/");
    } else if (rest == "//" || c == '#') {
      SkipPast("\n");
    } else {
      return;
    }
  }
}

CtfToken CtfLexer::Number() {
  const size_t start = at_;
  int base = 10;
  if (text_[at_] == '0' && at_ + 1 < text_.size()) {
    const char next = text_[at_ + 1];
    if (next == 'x' || next == 'X') {
      base = 16;
      at_ += 2;
    } else if (next == 'b' || next == 'B') {
      base = 2;
      at_ += 2;
    } else if (IsDigit(next)) {
      base = 8;
    }
  }
  uint64_t value = 0;
  while (at_ < text_.size() && DigitOf(text_[at_]) < base) {
    value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(DigitOf(text_[at_++]));
  }
  while (at_ < text_.size() && IsWord(text_[at_])) ++at_;  // suffixes: u, l, ll
  return {.kind = CtfToken::Kind::kNumber,
          .text = text_.substr(start, at_ - start),
          .number = value,
          .offset = start};
}

CtfToken CtfLexer::Quoted(char quote) {
  const size_t start = at_++;
  while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
  at_ = std::min(at_, text_.size());
  const std::string_view inside = text_.substr(start + 1, at_ - start - 1);
  if (at_ == text_.size()) {
    return {.kind = CtfToken::Kind::kBad, .text = inside, .offset = start};
  }
  ++at_;
  if (quote == '"') return {.kind = CtfToken::Kind::kString, .text = inside, .offset = start};
  const std::string plain = UnescapeCtf(inside);
  return {.kind = plain.size() == 1 ? CtfToken::Kind::kNumber : CtfToken::Kind::kBad,
          .text = inside,
          .number = plain.empty() ? uint64_t{0} : static_cast<uint8_t>(plain[0]),
          .offset = start};
}

CtfToken CtfLexer::Next() {
  SkipBlank();
  if (at_ >= text_.size()) return {.offset = text_.size()};
  const std::string_view rest = text_.substr(at_);
  const char c = rest[0];
  if (IsDigit(c)) return Number();
  if (c == '"' || c == '\'') return Quoted(c);
  if (IsWord(c)) {
    size_t length = 1;
    while (length < rest.size() && IsWord(rest[length])) ++length;
    return Take(CtfToken::Kind::kIdentifier, length);
  }
  if (rest.starts_with("...")) return Take(CtfToken::Kind::kPunctuation, 3);
  if (rest.starts_with(":=") || rest.starts_with("->")) {
    return Take(CtfToken::Kind::kPunctuation, 2);
  }
  const bool known = std::string_view("{}()[]<>;:=,.-+*").find(c) != std::string_view::npos;
  return Take(known ? CtfToken::Kind::kPunctuation : CtfToken::Kind::kBad, 1);
}

std::string UnescapeCtf(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char c = text[++i];
    static constexpr std::string_view kLetters = "ntrabfv0";
    static constexpr std::string_view kValues = "\n\t\r\a\b\f\v";
    const size_t letter = kLetters.find(c);
    const int base = c == 'x' ? 16 : 8;
    if (c == 'x' || (c >= '0' && c <= '7')) {
      int value = 0;
      size_t j = c == 'x' ? i + 1 : i;
      const size_t most = j + (c == 'x' ? 2 : 3);
      while (j < text.size() && j < most && DigitOf(text[j]) < base) {
        value = value * base + DigitOf(text[j++]);
      }
      out.push_back(static_cast<char>(value));
      i = j - 1;
    } else {
      out.push_back(letter < kValues.size() ? kValues[letter] : c);
    }
  }
  return out;
}

}  // namespace culprit::import_
