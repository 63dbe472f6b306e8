// SPDX-License-Identifier: Apache-2.0
//
// Load: what a program asked of the kernel, symbol by symbol: calls, time,
// failures. And the comparison of two loads, of the same program doing the same
// kind of work: what there is too much of.
//
// The two recordings differ in length and intensity, so the normal one is scaled
// by the work done: the lower quartile of the ratios of its symbols, weighted by
// the roots of their calls, those below 0.5 % of them left out; or the ratio of
// the calls that take work in, if less. A symbol is in excess if it has at least
// twice what was expected and that is at least five standard deviations away
// (calls as Poisson counts on both sides); its excess is what is above the
// expectation. An excess is slight, and explains nothing, unless its calls take
// 5 % of the recording's time; or there are more of them a second than usual, and
// such excess is together 5 % of all calls (of what is three times as often), or
// 20 % (of what is twice).
//
// Waits of threads for each other, 50 us or more on average, and the wakes that end
// them are told but not in excess: whoever they wait for is why. Shorter ones are a
// loop around a wait.
//
// There may be several normal loads, of the different kinds of work that the program
// does. Each has its own scale, and for each symbol the one counts that expects most
// of it: what any of them shows is normal, and so is a mixture of them. Rates, a
// second, are compared with the one whose mix of work is nearest.
//
// Amounts are integers: thousandths of calls, and nanoseconds. Time is compared
// the same way, without the calls in which a server waits for requests; calls that
// may be such waits are expected to take at least what the longer recording
// explains. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "episode/profile.h"
#include "episode/syscall_log.h"

namespace culprit::episode {

struct SymbolLoad {
  uint64_t calls = 0;
  int64_t dur_ns = 0;
  uint64_t failed = 0;
  uint16_t error = 0;  // the most common one
};

struct Load {
  std::vector<SymbolLoad> symbols;  // by Symbol
  uint64_t calls = 0;
  int64_t wall_ns = 0;  // of the recording; 0: not known
  bool has_durations = false;

  const SymbolLoad& of(Symbol symbol) const;
};

enum class Half { kBoth, kFirst, kSecond };  // of each thread's calls

Load LoadOf(const SyscallLog& log, Half half = Half::kBoth);
Load LoadOf(const Profile& profile, Half half = Half::kBoth);

struct SymbolExcess {
  Symbol symbol = 0;
  int64_t observed = 0;  // thousandths of calls, or nanoseconds
  int64_t expected = 0;
  int64_t excess = 0;
  int64_t strange = 0;  // of it: by threads that the profile knows, but not as making such calls
};

struct Comparison {
  size_t nearest = 0;        // of the normal loads, by mix_distance
  uint64_t scale_buggy = 0;  // of that: normal x scale_buggy / scale_normal is expected
  uint64_t scale_normal = 1;
  std::vector<SymbolExcess> calls;   // most first
  std::vector<SymbolExcess> slight;  // what is too little to make a program slow
  std::vector<SymbolExcess> waits;   // of threads for each other: who waits is not who is slow
  std::vector<SymbolExcess> time;    // most first; without waits for requests
  // Share of the calls outside the excess that are not where the normal load,
  // scaled by the symbols both have, has them: 0 the same mix of work, 1 nothing
  // in common. Of the nearest normal load.
  double mix_distance = 0;
};

struct CompareOptions {
  uint64_t min_ratio = 2;
  uint64_t min_sigmas = 5;
  int64_t min_time_ns = 1'000'000;
  uint64_t telling_ratio = 3;
  uint64_t min_percent = 5;          // of the recording's time, or of the calls, if telling
  uint64_t min_percent_of_any = 20;  // of the calls
};

// At least one normal load. `of_many`: by symbol, no function makes most of these
// calls (ownership.h).
Comparison Compare(const Load& buggy, std::span<const Load> normals, const SymbolTable& symbols,
                   const CompareOptions& options = {}, const std::vector<bool>& of_many = {});

// a * b / c without overflow in between, rounded down; c > 0.
int64_t MulDiv(int64_t a, uint64_t b, uint64_t c);

}  // namespace culprit::episode
