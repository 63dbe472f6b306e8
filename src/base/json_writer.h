// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: JSON as text, one value after the other, with commas, indent and
// escaping taken care of. Output is always valid UTF-8: bytes that are not
// (function names are hostile input) become U+FFFD. Integers are written in
// full; doubles with up to six significant digits, never NaN or infinity
// (null). Misuse (a value without a key in an object) is a failed check.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace culprit {

class JsonWriter {
 public:
  enum class Style { kCompact, kIndented };
  explicit JsonWriter(Style style = Style::kIndented) : style_(style) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view text);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& Double(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();

  JsonWriter& Field(std::string_view key, std::string_view value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, bool value) { return Key(key).Bool(value); }
  JsonWriter& Field(std::string_view key, double value) { return Key(key).Double(value); }
  template <std::integral Integer>
  JsonWriter& Field(std::string_view key, Integer value) {
    if constexpr (std::is_signed_v<Integer>) return Key(key).Int(value);
    return Key(key).Uint(value);
  }

  // The text so far; Take() empties it, so long output can be written in parts.
  const std::string& text() const { return out_; }
  std::string Take();

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeforeValue();
  void NewLine();
  void Escape(std::string_view text);

  Style style_;
  std::string out_;
  struct Level {
    char bracket;
    bool empty = true;
  };
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace culprit
