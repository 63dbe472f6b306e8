// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read and write them: durations ("1.25 ms"), counts
// ("1.2 M"), bytes ("3.4 MB", powers of 1000), shares ("32.5 %"), and back
// from flags ("300ms", "1.5s", "10%"). Also the edit distance behind "did you
// mean". All pure functions; formatting is exact integer arithmetic rounded
// half up, so the same number always prints the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace culprit {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;

std::string FormatDuration(int64_t dur_ns);
std::string FormatCount(uint64_t count);
std::string FormatBytes(uint64_t bytes);
// part / whole as "12.3 %"; "-" when whole is zero.
std::string FormatShare(int64_t part, int64_t whole);

// "250us", "1.5s", "3m", "2h", "100" (ns needs its unit: a bare number fails).
std::optional<int64_t> ParseDuration(std::string_view text);
std::optional<uint64_t> ParseUnsigned(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);

// What follows the last '/': "libc.so.6" of "/lib/libc.so.6".
inline std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The candidate nearest to `word`, if near enough to be what was meant.
std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace culprit
