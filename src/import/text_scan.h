// SPDX-License-Identifier: Apache-2.0
//
// Pieces of lines: tokens, numbers, times, "key=value" fields. All take views
// and allocate nothing; none throws; numbers that do not fit are no numbers.
// Shared by the importers of text formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::import_ {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsSpace(char c) { return c == ' ' || c == '\t'; }

std::string_view TrimLeft(std::string_view text);
std::string_view Trim(std::string_view text);
// Removes the first token and the blanks around it from `text`.
std::string_view TakeToken(std::string_view& text);

// All of `text` must be the number.
std::optional<int64_t> ParseDecimal(std::string_view text);
std::optional<uint64_t> ParseHexadecimal(std::string_view text);  // "0x" or not
// "0x1f", "-1", "17": wraps around like the kernel's 64-bit values.
std::optional<int64_t> ParseAnyInteger(std::string_view text);
// "3420.352054163" in seconds, to the nanosecond; further digits are dropped.
std::optional<int64_t> ParseSecondsNs(std::string_view text);

// What follows `key` ("prev_pid=") up to a blank; the key must begin the text
// or follow a blank. Empty: not there.
std::string_view FieldText(std::string_view text, std::string_view key);
std::optional<int64_t> FieldInteger(std::string_view text, std::string_view key);
// What stands between `key` and ` stop`, for values with blanks in them.
std::string_view FieldUntil(std::string_view text, std::string_view key, std::string_view stop);

}  // namespace culprit::import_
