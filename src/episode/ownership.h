// SPDX-License-Identifier: Apache-2.0
//
// Ownership: an excess of calls (or of time in calls) shared out over the
// functions of a profile. A function owns of a symbol's excess what it has of
// the symbol's calls in the profile: innermost as its share of all of them,
// inclusive relative to the function that has most, so that the functions on
// the way to a call all own it.
//
// What a function owns innermost counts in full. Being on the way counts by how
// telling that is: times the share of the function's calls that are of symbols
// in excess, times 1 - log(its calls) / log(all calls), so that main, which is
// on the way to everything, scores nothing. The larger of the two is the score.
//
// Functions with equal inclusive counts cannot be told apart: they are one row,
// who makes the calls itself first. What the profile has no owner for is a row
// of its own, [not in profile], and so is what threads made (SymbolExcess::strange) that
// the profile knows as making other calls. Rows below 5 % of the first are left out and
// counted. Integers only; O(functions x symbols).
#pragma once

#include <cstdint>
#include <vector>

#include "episode/load.h"
#include "episode/profile.h"

namespace culprit::episode {

struct OwnedRow {
  // Indexes in Profile::functions; the first gives the row its name, the others
  // are its co-owners. Empty: [not in profile].
  std::vector<uint32_t> functions;
  std::vector<Symbol> symbols;  // what it owns of, most first
  int64_t own = 0;              // innermost
  int64_t owned = 0;            // inclusive
  int64_t score = 0;            // see above

  bool in_profile() const { return !functions.empty(); }
};

struct OwnershipOptions {
  uint64_t keep_percent = 5;
};

struct OwnedExcess {
  std::vector<OwnedRow> rows;  // best first
  uint64_t left_out = 0;       // rows below the bound
  uint64_t functions = 0;      // named in the rows, co-owners included
};

// By symbol: functions make such calls, but none of them half of these.
std::vector<bool> MadeByMany(const Profile& profile);

OwnedExcess ShareOut(const Profile& profile, const std::vector<SymbolExcess>& excess,
                     const OwnershipOptions& options = {});

}  // namespace culprit::episode
