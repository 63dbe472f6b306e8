// SPDX-License-Identifier: Apache-2.0
#include "episode/load.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace culprit::episode {
namespace {

__extension__ using WideAmount = unsigned __int128;
constexpr int64_t kMilli = 1000;

struct Ratio {
  uint64_t buggy;
  uint64_t normal;
};

// The lower median, so that half of the symbols may be inflated by the bug
// before the scale moves.
Ratio ScaleOf(const Load& buggy, const Load& normal, uint64_t least_calls) {
  std::vector<Ratio> ratios;
  for (size_t i = 0; i < normal.symbols.size(); ++i) {
    const uint64_t calls = buggy.of(static_cast<Symbol>(i)).calls;
    if (normal.symbols[i].calls == 0 || calls < least_calls) continue;
    ratios.push_back({calls, normal.symbols[i].calls});
  }
  if (ratios.empty()) return {0, 1};
  const auto middle = ratios.begin() + static_cast<ptrdiff_t>((ratios.size() - 1) / 2);
  std::nth_element(ratios.begin(), middle, ratios.end(), [](const Ratio& a, const Ratio& b) {
    return WideAmount{a.buggy} * b.normal < WideAmount{b.buggy} * a.normal;
  });
  return *middle;
}

// (observed - expected)^2 >= sigmas^2 (expected (1 + scale)), at least one call
// of variance.
bool IsSignificant(uint64_t observed, uint64_t normal, const Ratio& scale, uint64_t sigmas) {
  const double factor = static_cast<double>(scale.buggy) / static_cast<double>(scale.normal);
  const double expected = static_cast<double>(normal) * factor;
  const double above = static_cast<double>(observed) - expected;
  const double variance = std::max(expected + expected * factor, 1.0);
  const auto bound = static_cast<double>(sigmas * sigmas);
  return above > 0 && above * above >= bound * variance;
}

void MostFirst(std::vector<SymbolExcess>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.excess > b.excess; });
}

// Scaled by the symbols that are there at all: calls that are missing altogether
// are as much another mix as calls that are too many.
double MixDistance(const Load& buggy, const Load& normal, const Comparison& comparison,
                   size_t symbols) {
  const Ratio scale = ScaleOf(buggy, normal, 1);
  std::vector<bool> left_out(symbols);
  for (const SymbolExcess& row : comparison.calls) left_out[row.symbol] = true;
  int64_t apart = 0;
  int64_t together = 0;
  for (size_t i = 0; i < symbols; ++i) {
    if (left_out[i]) continue;
    const auto symbol = static_cast<Symbol>(i);
    const auto there = static_cast<int64_t>(buggy.of(symbol).calls) * kMilli;
    const int64_t expected =
        MulDiv(static_cast<int64_t>(normal.of(symbol).calls) * kMilli, scale.buggy, scale.normal);
    apart += std::abs(there - expected);
    together += there + expected;
  }
  return together == 0 ? 0 : static_cast<double>(apart) / static_cast<double>(together);
}

}  // namespace

int64_t MulDiv(int64_t a, uint64_t b, uint64_t c) {
  CULPRIT_CHECK(a >= 0 && c > 0);
  const WideAmount value = WideAmount{static_cast<uint64_t>(a)} * b / c;
  return static_cast<int64_t>(std::min<WideAmount>(value, INT64_MAX / 4));
}

const SymbolLoad& Load::of(Symbol symbol) const {
  static const SymbolLoad none;
  return symbol < symbols.size() ? symbols[symbol] : none;
}

Load LoadOf(const SyscallLog& log, Half half) {
  Load load;
  load.has_durations = log.has_durations;
  load.wall_ns = std::max<int64_t>(log.end_ns - log.begin_ns, 0);
  std::map<std::pair<Symbol, uint16_t>, uint64_t> errors;
  for (const ThreadLog& thread : log.threads) {
    const size_t middle = (thread.calls.size() + 1) / 2;
    const size_t begin = half == Half::kSecond ? middle : 0;
    const size_t end = half == Half::kFirst ? middle : thread.calls.size();
    for (size_t i = begin; i < end; ++i) {
      const Syscall& call = thread.calls[i];
      if (load.symbols.size() <= call.symbol) load.symbols.resize(call.symbol + size_t{1});
      SymbolLoad& symbol = load.symbols[call.symbol];
      ++symbol.calls;
      ++load.calls;
      symbol.dur_ns += call.dur_ns;
      if (call.error == 0) continue;
      ++symbol.failed;
      ++errors[{call.symbol, call.error}];
    }
  }
  std::vector<uint64_t> most(load.symbols.size());
  for (const auto& [key, count] : errors) {
    if (count <= most[key.first]) continue;
    most[key.first] = count;
    load.symbols[key.first].error = key.second;
  }
  return load;
}

Load LoadOf(const Profile& profile, Half half) {
  Load load;
  load.has_durations = profile.has_durations && half == Half::kBoth;
  load.symbols.resize(profile.symbols.size());
  for (const SymbolTotal& total : profile.totals) {
    SymbolLoad& symbol = load.symbols[total.symbol];
    symbol.calls = half == Half::kBoth    ? total.count
                   : half == Half::kFirst ? total.first_half
                                          : total.count - total.first_half;
    if (half == Half::kBoth) symbol.dur_ns = total.dur_ns;
    load.calls += symbol.calls;
  }
  return load;
}

Comparison Compare(const Load& buggy, const Load& normal, const SymbolTable& symbols,
                   const CompareOptions& options) {
  const Ratio scale = ScaleOf(buggy, normal, 0);
  Comparison result = {.scale_buggy = scale.buggy, .scale_normal = scale.normal};
  const bool times = buggy.has_durations && normal.has_durations;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto symbol = static_cast<Symbol>(i);
    const SymbolLoad& there = buggy.of(symbol);
    const SymbolLoad& usual = normal.of(symbol);
    SymbolExcess calls = {.symbol = symbol, .observed = static_cast<int64_t>(there.calls) * kMilli};
    calls.expected = MulDiv(static_cast<int64_t>(usual.calls) * kMilli, scale.buggy, scale.normal);
    calls.excess = calls.observed - calls.expected;
    const auto ratio = static_cast<int64_t>(options.min_ratio);
    if (calls.observed >= ratio * calls.expected &&
        IsSignificant(there.calls, usual.calls, scale, options.min_sigmas)) {
      result.calls.push_back(calls);
    }
    if (!times || WaitsForRequests(symbols.Name(symbol))) continue;
    SymbolExcess time = {.symbol = symbol, .observed = there.dur_ns};
    time.expected = MulDiv(usual.dur_ns, scale.buggy, scale.normal);
    if (MayWaitForRequests(symbols.Name(symbol))) {
      if (normal.wall_ns == 0) continue;
      time.expected =
          std::max(time.expected, MulDiv(usual.dur_ns, static_cast<uint64_t>(buggy.wall_ns),
                                         static_cast<uint64_t>(normal.wall_ns)));
    }
    time.excess = time.observed - time.expected;
    if (time.observed / ratio >= time.expected && time.excess >= options.min_time_ns) {
      result.time.push_back(time);
    }
  }
  MostFirst(result.calls);
  MostFirst(result.time);
  result.mix_distance = MixDistance(buggy, normal, result, symbols.size());
  return result;
}

}  // namespace culprit::episode
