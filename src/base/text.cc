// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace culprit {
namespace {

struct Unit {
  std::string_view name;
  uint64_t size;
};

// Three significant digits of value/unit, rounded half up, trailing zeros kept.
std::string ThreeDigits(uint64_t value, uint64_t unit) {
  const int decimals = value / unit >= 100 ? 0 : value / unit >= 10 ? 1 : 2;
  const uint64_t power = decimals == 0 ? 1 : decimals == 1 ? 10 : 100;
  // Whole part and rest apart: their product with `power` cannot overflow.
  const uint64_t scaled = value / unit * power + (value % unit * power + unit / 2) / unit;
  std::string text = std::to_string(scaled / power);
  if (decimals > 0) {
    std::string fraction = std::to_string(scaled % power);
    text += "." + std::string(static_cast<size_t>(decimals) - fraction.size(), '0') + fraction;
  }
  return text;
}

std::string WithUnit(uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value >= unit.size) {
      return ThreeDigits(value, unit.size) + " " + std::string(unit.name);
    }
  }
  const Unit& last = units.back();
  return std::to_string(value) + (last.name.empty() ? "" : " " + std::string(last.name));
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string FormatDuration(int64_t dur_ns) {
  static constexpr std::array<Unit, 6> kUnits = {{{"h", 3'600'000'000'000},
                                                  {"min", 60'000'000'000},
                                                  {"s", 1'000'000'000},
                                                  {"ms", 1'000'000},
                                                  {"us", 1'000},
                                                  {"ns", 1'000}}};
  if (dur_ns < 0) return "-" + FormatDuration(dur_ns == INT64_MIN ? INT64_MAX : -dur_ns);
  return WithUnit(static_cast<uint64_t>(dur_ns), kUnits);
}

std::string FormatCount(uint64_t count) {
  static constexpr std::array<Unit, 4> kUnits = {
      {{"G", 1'000'000'000}, {"M", 1'000'000}, {"k", 10'000}, {"", 10'000}}};
  if (count >= 10'000 && count < 1'000'000) return ThreeDigits(count, 1000) + " k";
  return WithUnit(count, kUnits);
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits = {{{"TB", 1'000'000'000'000},
                                                  {"GB", 1'000'000'000},
                                                  {"MB", 1'000'000},
                                                  {"kB", 1'000},
                                                  {"B", 1'000}}};
  return WithUnit(bytes, kUnits);
}

std::string FormatShare(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  const bool negative = part != 0 && (part < 0) != (whole < 0);
  const auto magnitude = [](int64_t v) {
    return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  };
  // Scaled down together, if need be, so that part * 1000 fits.
  uint64_t p = magnitude(part);
  uint64_t w = magnitude(whole);
  while (p > UINT64_MAX / 2000) {
    p >>= 1;
    w >>= 1;
  }
  if (w == 0) return negative ? "-inf %" : "inf %";
  const uint64_t tenths = (p * 1000 + w / 2) / w;
  return std::string(negative ? "-" : "") + std::to_string(tenths / 10) + "." +
         std::to_string(tenths % 10) + " %";
}

std::optional<double> ParseDouble(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<int64_t> ParseDuration(std::string_view text) {
  static constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                                  {"us", 1'000},
                                                  {"\xc2\xb5s", 1'000},
                                                  {"ms", 1'000'000},
                                                  {"min", 60'000'000'000},
                                                  {"s", 1'000'000'000},
                                                  {"m", 60'000'000'000},
                                                  {"h", 3'600'000'000'000}}};
  for (const Unit& unit : kUnits) {
    if (text.size() <= unit.name.size() || !text.ends_with(unit.name)) continue;
    const auto number = ParseDouble(text.substr(0, text.size() - unit.name.size()));
    if (!number) continue;
    const double ns = *number * static_cast<double>(unit.size);
    if (std::abs(ns) >= 9.2e18) return {};
    return std::llround(ns);
  }
  return {};
}

std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    size_t distance = EditDistance(word, candidate);
    if (word.size() >= 2 && candidate.starts_with(word)) distance = 1;
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace culprit
