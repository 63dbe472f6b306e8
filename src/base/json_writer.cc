// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace culprit {
void JsonWriter::NewLine() {
  if (style_ == Style::kCompact) return;
  out_.push_back('\n');
  out_.append(levels_.size() * 2, ' ');
}

void JsonWriter::BeforeValue() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  CULPRIT_CHECK(levels_.back().bracket == '[');
  if (!levels_.back().empty) out_.push_back(',');
  levels_.back().empty = false;
  NewLine();
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  CULPRIT_CHECK(!levels_.empty() && levels_.back().bracket == '{' && !after_key_);
  if (!levels_.back().empty) out_.push_back(',');
  levels_.back().empty = false;
  NewLine();
  Escape(key);
  out_.append(style_ == Style::kCompact ? ":" : ": ");
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Open(char bracket) {
  BeforeValue();
  out_.push_back(bracket);
  levels_.push_back({.bracket = bracket});
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  CULPRIT_CHECK(!levels_.empty() && !after_key_);
  CULPRIT_CHECK(levels_.back().bracket == (bracket == '}' ? '{' : '['));
  const bool empty = levels_.back().empty;
  levels_.pop_back();
  if (!empty) NewLine();
  out_.push_back(bracket);
  if (levels_.empty() && style_ == Style::kIndented) out_.push_back('\n');
  return *this;
}

void JsonWriter::Escape(std::string_view text) {
  out_.push_back('"');
  while (!text.empty()) {
    const Utf8Character at = DecodeUtf8(text);
    const char c = text.front();
    if (!at.valid) {
      out_.append(kReplacementCharacter);
    } else if (at.length > 1) {
      out_.append(text.substr(0, at.length));
    } else if (c == '"' || c == '\\') {
      out_.push_back('\\');
      out_.push_back(c);
    } else if (c == '\n') {
      out_.append("\\n");
    } else if (c == '\t') {
      out_.append("\\t");
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
      static constexpr char kHex[] = "0123456789abcdef";
      out_.append("\\u00");
      out_.push_back(kHex[static_cast<uint8_t>(c) >> 4]);
      out_.push_back(kHex[c & 15]);
    } else {
      out_.push_back(c);
    }
    text.remove_prefix(at.length);
  }
  out_.push_back('"');
}

JsonWriter& JsonWriter::String(std::string_view text) {
  BeforeValue();
  Escape(text);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue();
  out_.append(std::to_string(value));
  return *this;
}

JsonWriter& JsonWriter::Uint(uint64_t value) {
  BeforeValue();
  out_.append(std::to_string(value));
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  if (!std::isfinite(value)) return Null();
  BeforeValue();
  char digits[32];
  const auto [end, error] =
      std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::general, 6);
  CULPRIT_CHECK(error == std::errc());
  out_.append(digits, end);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  BeforeValue();
  out_.append(value ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeforeValue();
  out_.append("null");
  return *this;
}

std::string JsonWriter::Take() { return std::exchange(out_, {}); }

}  // namespace culprit
