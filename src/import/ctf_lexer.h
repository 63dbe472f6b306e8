// SPDX-License-Identifier: Apache-2.0
//
// CtfLexer: the words of TSDL, the language of CTF 1.8 metadata: identifiers,
// integers, strings and punctuation; comments and preprocessor lines are left
// out. Views point into the text, which must outlive the lexer. Never fails:
// what fits nowhere is a kBad token, and the end comes back forever.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::import_ {

struct CtfToken {
  enum class Kind : uint8_t { kEnd, kIdentifier, kNumber, kString, kPunctuation, kBad };

  Kind kind = Kind::kEnd;
  std::string_view text = {};  // of a string: between the quotes, escapes as written
  uint64_t number = 0;
  uint64_t offset = 0;

  bool Is(std::string_view word) const {
    return (kind == Kind::kIdentifier || kind == Kind::kPunctuation) && text == word;
  }
};

class CtfLexer {
 public:
  explicit CtfLexer(std::string_view text) : text_(text) {}

  CtfToken Next();

 private:
  void SkipBlank();
  void SkipPast(std::string_view mark);
  CtfToken Number();
  CtfToken Quoted(char quote);
  CtfToken Take(CtfToken::Kind kind, size_t length);

  std::string_view text_;
  size_t at_ = 0;
};

// A string's text with its escapes (\n, \", \x41, \101) replaced.
std::string UnescapeCtf(std::string_view text);

}  // namespace culprit::import_
