// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace culprit {
namespace {

// The length of the UTF-8 sequence at the front of `text`; 0 if it is not one.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

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
    const size_t length = Utf8Length(text);
    const char c = text.front();
    if (length == 0) {
      out_.append("\xef\xbf\xbd");
      text.remove_prefix(1);
      continue;
    }
    if (length > 1) {
      out_.append(text.substr(0, length));
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
    text.remove_prefix(length);
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
