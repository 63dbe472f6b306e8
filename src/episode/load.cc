// SPDX-License-Identifier: Apache-2.0
#include "episode/load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/check.h"

namespace culprit::episode {
namespace {

__extension__ using WideAmount = unsigned __int128;
constexpr int64_t kMilli = 1000;
constexpr uint64_t kRareShare = 200;  // below one in so many calls a symbol is rare

// Of what waits for nothing but time.
bool IsSleep(std::string_view name) { return name == "nanosleep" || name == "clock_nanosleep"; }

struct Ratio {
  uint64_t buggy;
  uint64_t normal;
};

// The lower quartile, where a symbol weighs the root of its calls and rare ones do
// not count. A bug that adds calls can only raise ratios; and where it slows the
// program down, the many rare symbols of timers and start-up code stay as they
// are. With weights that follow the calls themselves, the two symbols that a busy
// loop repeats would be the scale.
Ratio ScaleOf(const Load& buggy, const Load& normal, uint64_t least_calls) {
  struct Weighted {
    Ratio ratio;
    double weight;
  };
  std::vector<Weighted> ratios;
  double total = 0;
  for (size_t i = 0; i < normal.symbols.size(); ++i) {
    const uint64_t calls = buggy.of(static_cast<Symbol>(i)).calls;
    const uint64_t usual = normal.symbols[i].calls;
    if (usual == 0 || usual < normal.calls / kRareShare || calls < least_calls) continue;
    ratios.push_back({{calls, usual}, std::sqrt(static_cast<double>(usual))});
  }
  std::stable_sort(ratios.begin(), ratios.end(), [](const Weighted& a, const Weighted& b) {
    return WideAmount{a.ratio.buggy} * b.ratio.normal < WideAmount{b.ratio.buggy} * a.ratio.normal;
  });
  for (const Weighted& row : ratios) total += row.weight;
  double below = 0;
  for (const Weighted& row : ratios) {
    below += row.weight;
    if (4 * below >= total) return row.ratio;
  }
  return {0, 1};
}

// Work comes in by these. Where a bug repeats most of what is done for a request,
// they alone still tell how many there were.
bool TakesWorkIn(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {"read",    "readv",  "recvfrom",
                                                             "recvmsg", "accept", "accept4"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// How much work was done: as the calls that take it in say, if that is less than
// what all calls say. They too may be repeated.
Ratio WorkOf(const Load& buggy, const Load& normal, const SymbolTable& symbols) {
  const Ratio by_all = ScaleOf(buggy, normal, 0);
  Ratio taken_in = {0, 0};
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto symbol = static_cast<Symbol>(i);
    if (!TakesWorkIn(symbols.Name(symbol))) continue;
    taken_in.buggy += buggy.of(symbol).calls;
    taken_in.normal += normal.of(symbol).calls;
  }
  const bool less =
      WideAmount{taken_in.buggy} * by_all.normal < WideAmount{by_all.buggy} * taken_in.normal;
  return less ? taken_in : by_all;
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

// Do the calls that are too many take a good part of the recording? Not asked of
// calls that may be waits for work, since idle threads have long ones; but a
// program that never slept and now does is not idle.
bool TakesLong(const SymbolExcess& row, const Load& buggy, std::span<const Load> normals,
               std::string_view name, uint64_t percent) {
  if (!buggy.has_durations || buggy.wall_ns == 0) return false;
  const bool waits = WaitsForRequests(name) || MayWaitForRequests(name);
  const bool new_sleep =
      IsSleep(name) && std::all_of(normals.begin(), normals.end(), [&](const Load& normal) {
        return normal.of(row.symbol).calls == 0;
      });
  if (waits && !new_sleep) return false;
  const int64_t time_ns = MulDiv(buggy.of(row.symbol).dur_ns, static_cast<uint64_t>(row.excess),
                                 static_cast<uint64_t>(row.observed));
  return time_ns >= MulDiv(buggy.wall_ns, percent, 100);
}

// A thread that waits for another makes the call that the other is the reason for: so
// waits for an interpreter's lock would blame everybody but who keeps it.
bool IsWaitForThread(const SymbolExcess& row, const Load& buggy, std::string_view name) {
  constexpr int64_t kRealWaitNs = 50'000;
  if (!buggy.has_durations || !name.starts_with("futex") ||
      name.find("WAIT") == std::string_view::npos) {
    return false;
  }
  const SymbolLoad& load = buggy.of(row.symbol);
  return load.dur_ns / kRealWaitNs >= static_cast<int64_t>(load.calls);
}

// Are there more a second than usual? What timers do goes on at its rate while a
// slow program does less of all else.
bool CameMoreOften(const SymbolExcess& row, const Load& buggy, const Load& normal) {
  if (buggy.wall_ns == 0 || normal.wall_ns == 0) return true;
  return WideAmount{buggy.of(row.symbol).calls} * 4 * static_cast<uint64_t>(normal.wall_ns) >
         WideAmount{normal.of(row.symbol).calls} * 5 * static_cast<uint64_t>(buggy.wall_ns);
}

// With the waits go the calls that end them; and so does what is spread over the
// functions of a program: a lock that all of them need, as of an interpreter.
void SetWaitsAside(const Load& buggy, const SymbolTable& symbols, const std::vector<bool>& of_many,
                   Comparison& result) {
  const auto set_aside = [&](const auto& goes) {
    const auto from = std::stable_partition(result.calls.begin(), result.calls.end(),
                                            [&](const auto& row) { return !goes(row); });
    result.waits.insert(result.waits.end(), from, result.calls.end());
    result.calls.erase(from, result.calls.end());
  };
  set_aside([&](const SymbolExcess& row) {
    const std::string_view name = symbols.Name(row.symbol);
    const bool everybodys =
        row.symbol < of_many.size() && of_many[row.symbol] && name.starts_with("futex");
    return everybodys || IsWaitForThread(row, buggy, name);
  });
  int64_t waits = 0;
  for (const SymbolExcess& row : result.waits) waits += row.observed;
  set_aside([&](const SymbolExcess& row) {
    const std::string_view name = symbols.Name(row.symbol);
    return name.starts_with("futex") && name.find("WAKE") != std::string_view::npos &&
           row.observed <= 2 * waits;
  });
}

// Moves away what cannot be why a program is slow: what neither takes long nor is
// a good part of all calls. Twice the connections are other work, not a loop, so
// what is only about twice as often must be much to count.
void SetSlightAside(const Load& buggy, std::span<const Load> normals, const SymbolTable& symbols,
                    const CompareOptions& options, Comparison& result) {
  const auto ratio = static_cast<int64_t>(options.telling_ratio);
  const auto is_telling = [&](const SymbolExcess& row) {
    return row.observed / ratio >= row.expected;
  };
  const Load& nearest = normals[result.nearest];
  int64_t more = 0;
  int64_t telling = 0;
  for (const SymbolExcess& row : result.calls) {
    if (!CameMoreOften(row, buggy, nearest)) continue;
    more += row.excess;
    if (is_telling(row)) telling += row.excess;
  }
  const int64_t all = static_cast<int64_t>(buggy.calls) * kMilli;
  const bool many = more >= MulDiv(all, options.min_percent_of_any, 100);
  const bool many_telling = telling >= MulDiv(all, options.min_percent, 100);
  const auto slight =
      std::stable_partition(result.calls.begin(), result.calls.end(), [&](const SymbolExcess& row) {
        const std::string_view name = symbols.Name(row.symbol);
        if (TakesLong(row, buggy, normals, name, options.min_percent)) return true;
        return (many || (many_telling && is_telling(row))) && CameMoreOften(row, buggy, nearest);
      });
  result.slight.assign(slight, result.calls.end());
  result.calls.erase(slight, result.calls.end());
}

// One of the normal loads, brought to the length and intensity of the other side.
struct Scaled {
  const Load* load;
  Ratio scale;

  int64_t Calls(Symbol symbol) const {
    return MulDiv(static_cast<int64_t>(load->of(symbol).calls) * kMilli, scale.buggy, scale.normal);
  }
  int64_t TimeNs(Symbol symbol, bool may_wait, int64_t wall_ns) const {
    const int64_t dur_ns = load->of(symbol).dur_ns;
    const int64_t expected_ns = MulDiv(dur_ns, scale.buggy, scale.normal);
    if (!may_wait) return expected_ns;
    return std::max(expected_ns, MulDiv(dur_ns, static_cast<uint64_t>(wall_ns),
                                        static_cast<uint64_t>(load->wall_ns)));
  }
};

// The one that expects most calls is asked whether there are too many.
void CompareCalls(const Load& buggy, std::span<const Scaled> normals, Symbol symbol,
                  const CompareOptions& options, Comparison& result) {
  const Scaled& most = *std::max_element(
      normals.begin(), normals.end(),
      [&](const Scaled& a, const Scaled& b) { return a.Calls(symbol) < b.Calls(symbol); });
  const uint64_t calls = buggy.of(symbol).calls;
  SymbolExcess row = {.symbol = symbol,
                      .observed = static_cast<int64_t>(calls) * kMilli,
                      .expected = most.Calls(symbol)};
  row.excess = row.observed - row.expected;
  if (row.observed >= static_cast<int64_t>(options.min_ratio) * row.expected &&
      IsSignificant(calls, most.load->of(symbol).calls, most.scale, options.min_sigmas)) {
    result.calls.push_back(row);
  }
}

void CompareTime(const Load& buggy, std::span<const Scaled> normals, Symbol symbol,
                 std::string_view name, const CompareOptions& options, Comparison& result) {
  if (WaitsForRequests(name)) return;
  SymbolExcess row = {.symbol = symbol, .observed = buggy.of(symbol).dur_ns};
  const bool may_wait = MayWaitForRequests(name);
  for (const Scaled& normal : normals) {
    if (may_wait && normal.load->wall_ns == 0) return;
    row.expected = std::max(row.expected, normal.TimeNs(symbol, may_wait, buggy.wall_ns));
  }
  row.excess = row.observed - row.expected;
  if (row.observed / static_cast<int64_t>(options.min_ratio) >= row.expected &&
      row.excess >= options.min_time_ns) {
    result.time.push_back(row);
  }
}

void FindNearest(const Load& buggy, std::span<const Scaled> normals, size_t symbols,
                 Comparison& result) {
  for (size_t i = 0; i < normals.size(); ++i) {
    const double distance = MixDistance(buggy, *normals[i].load, result, symbols);
    if (i > 0 && distance >= result.mix_distance) continue;
    result.nearest = i;
    result.mix_distance = distance;
    result.scale_buggy = normals[i].scale.buggy;
    result.scale_normal = normals[i].scale.normal;
  }
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

Comparison Compare(const Load& buggy, std::span<const Load> normals, const SymbolTable& symbols,
                   const CompareOptions& options, const std::vector<bool>& of_many) {
  CULPRIT_CHECK(!normals.empty());
  Comparison result;
  std::vector<Scaled> scaled;
  bool times = buggy.has_durations;
  for (const Load& normal : normals) {
    scaled.push_back({&normal, WorkOf(buggy, normal, symbols)});
    times = times && normal.has_durations;
  }
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto symbol = static_cast<Symbol>(i);
    CompareCalls(buggy, scaled, symbol, options, result);
    if (times) CompareTime(buggy, scaled, symbol, symbols.Name(symbol), options, result);
  }
  MostFirst(result.calls);
  MostFirst(result.time);
  FindNearest(buggy, scaled, symbols.size(), result);
  SetWaitsAside(buggy, symbols, of_many, result);
  SetSlightAside(buggy, normals, symbols, options, result);
  return result;
}

}  // namespace culprit::episode
