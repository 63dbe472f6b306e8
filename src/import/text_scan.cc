// SPDX-License-Identifier: Apache-2.0
#include "import/text_scan.h"

#include <charconv>
#include <cstddef>

#include "base/text.h"

namespace culprit::import_ {
namespace {

template <class Number>
std::optional<Number> FromChars(std::string_view text, int base) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value, base);
  if (code != std::errc() || stop != end || text.empty()) return {};
  return value;
}

}  // namespace

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view Trim(std::string_view text) {
  text = TrimLeft(text);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view TakeToken(std::string_view& text) {
  text = TrimLeft(text);
  size_t length = 0;
  while (length < text.size() && !IsSpace(text[length])) ++length;
  const std::string_view token = text.substr(0, length);
  text = TrimLeft(text.substr(length));
  return token;
}

std::optional<int64_t> ParseDecimal(std::string_view text) { return FromChars<int64_t>(text, 10); }

std::optional<uint64_t> ParseHexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return FromChars<uint64_t>(text, 16);
}

std::optional<int64_t> ParseAnyInteger(std::string_view text) {
  if (text.starts_with("0x")) {
    const auto value = ParseHexadecimal(text);
    return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
  }
  if (const auto value = ParseDecimal(text)) return value;
  const auto wide = FromChars<uint64_t>(text, 10);
  return wide ? std::optional(static_cast<int64_t>(*wide)) : std::nullopt;
}

std::optional<int64_t> ParseSecondsNs(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == 0 || dot == std::string_view::npos || !IsDigit(text.front())) return {};
  const auto seconds = ParseDecimal(text.substr(0, dot));
  const std::string_view digits = text.substr(dot + 1);
  if (!seconds || *seconds > INT64_MAX / kNsPerSecond - 1 || digits.empty()) return {};
  int64_t fraction = 0;
  int64_t unit = kNsPerSecond;
  for (const char c : digits) {
    if (!IsDigit(c)) return {};
    if (unit == 1) continue;
    fraction = fraction * 10 + (c - '0');
    unit /= 10;
  }
  return *seconds * kNsPerSecond + fraction * unit;
}

std::string_view FieldText(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at != 0 && !IsSpace(text[at - 1])) continue;
    text.remove_prefix(at + key.size());
    size_t length = 0;
    while (length < text.size() && !IsSpace(text[length])) ++length;
    return text.substr(0, length);
  }
  return {};
}

std::optional<int64_t> FieldInteger(std::string_view text, std::string_view key) {
  return ParseAnyInteger(FieldText(text, key));
}

std::string_view FieldUntil(std::string_view text, std::string_view key, std::string_view stop) {
  const size_t begin = text.find(key);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + key.size());
  const size_t end = text.find(stop);
  return end == std::string_view::npos ? std::string_view() : Trim(text.substr(0, end));
}

}  // namespace culprit::import_
