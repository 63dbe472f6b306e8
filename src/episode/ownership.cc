// SPDX-License-Identifier: Apache-2.0
#include "episode/ownership.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace culprit::episode {
namespace {

struct SymbolOwners {
  uint64_t total = 0;    // calls in the profile
  uint64_t owned = 0;    // with a function
  uint64_t largest = 0;  // inclusive count of the function that has most
  int64_t excess = 0;
};

using BySymbol = std::vector<SymbolOwners>;

BySymbol OwnersOf(const Profile& profile, const std::vector<SymbolExcess>& excess) {
  BySymbol symbols(profile.symbols.size());
  for (const SymbolTotal& total : profile.totals) symbols[total.symbol].total = total.count;
  for (const ProfiledFunction& function : profile.functions) {
    for (const SymbolCount& row : function.innermost) symbols[row.symbol].owned += row.count;
    for (const SymbolCount& row : function.inclusive) {
      symbols[row.symbol].largest = std::max(symbols[row.symbol].largest, row.count);
    }
  }
  for (const SymbolExcess& row : excess) symbols[row.symbol].excess = row.excess - row.strange;
  // A file may claim more owners than calls.
  for (SymbolOwners& symbol : symbols) symbol.total = std::max(symbol.total, symbol.owned);
  return symbols;
}

struct SymbolAmount {
  Symbol symbol;
  int64_t amount;
};

void SetSymbols(std::vector<SymbolAmount> amounts, OwnedRow& row) {
  std::stable_sort(amounts.begin(), amounts.end(),
                   [](const auto& a, const auto& b) { return a.amount > b.amount; });
  for (const SymbolAmount& amount : amounts) row.symbols.push_back(amount.symbol);
}

// How special a function is, in 1024ths: 1024 for one that is on the way to a
// single call of the profile, 0 for one that is on the way to all of them.
uint64_t Specialty(uint64_t inclusive, uint64_t total) {
  if (total < 2 || inclusive == 0 || inclusive >= total) return 0;
  const double all = std::log2(static_cast<double>(total));
  const double own = std::log2(static_cast<double>(inclusive));
  return static_cast<uint64_t>(std::lround(1024 * (all - own) / all));
}

// Inclusive amount and symbols of a row, and its score as one on the way to the
// calls; they are the same for all of its functions.
void Weigh(const ProfiledFunction& function, const BySymbol& symbols, uint64_t total,
           OwnedRow& row) {
  std::vector<SymbolAmount> amounts;
  uint64_t all = 0;
  uint64_t in_excess = 0;
  for (const SymbolCount& count : function.inclusive) {
    const SymbolOwners& symbol = symbols[count.symbol];
    all += count.count;
    if (symbol.excess <= 0 || symbol.total == 0) continue;
    in_excess += count.count;
    const int64_t ownable = MulDiv(symbol.excess, symbol.owned, symbol.total);
    const int64_t amount = MulDiv(ownable, count.count, symbol.largest);
    row.owned += amount;
    amounts.push_back({count.symbol, amount});
  }
  SetSymbols(std::move(amounts), row);
  if (all > 0) row.score = MulDiv(MulDiv(row.owned, in_excess, all), Specialty(all, total), 1024);
}

int64_t OwnAmount(const ProfiledFunction& function, const BySymbol& symbols) {
  int64_t own = 0;
  for (const SymbolCount& count : function.innermost) {
    const SymbolOwners& symbol = symbols[count.symbol];
    if (symbol.excess > 0) own += MulDiv(symbol.excess, count.count, symbol.total);
  }
  return own;
}

OwnedRow NotInProfile(const std::vector<SymbolExcess>& excess, const BySymbol& symbols) {
  OwnedRow row;
  std::vector<SymbolAmount> amounts;
  for (const SymbolExcess& one : excess) {
    const SymbolOwners& symbol = symbols[one.symbol];
    const int64_t amount =
        symbol.total == 0
            ? one.excess
            : one.strange + MulDiv(symbol.excess, symbol.total - symbol.owned, symbol.total);
    if (amount == 0) continue;
    row.own += amount;
    amounts.push_back({one.symbol, amount});
  }
  row.owned = row.score = row.own;
  SetSymbols(std::move(amounts), row);
  return row;
}

using InclusiveKey = std::vector<std::pair<Symbol, uint64_t>>;

std::vector<OwnedRow> RowsOf(const Profile& profile, const BySymbol& symbols) {
  std::map<InclusiveKey, std::vector<uint32_t>> groups;
  for (size_t i = 0; i < profile.functions.size(); ++i) {
    InclusiveKey key;
    bool touched = false;
    for (const SymbolCount& row : profile.functions[i].inclusive) {
      key.emplace_back(row.symbol, row.count);
      touched = touched || symbols[row.symbol].excess > 0;
    }
    if (touched) groups[key].push_back(static_cast<uint32_t>(i));
  }
  std::vector<OwnedRow> rows;
  for (auto& [key, functions] : groups) {
    OwnedRow row;
    Weigh(profile.functions[functions.front()], symbols, profile.syscalls, row);
    std::vector<std::pair<int64_t, uint32_t>> by_own;
    for (const uint32_t function : functions) {
      by_own.emplace_back(OwnAmount(profile.functions[function], symbols), function);
      row.own += by_own.back().first;
    }
    std::stable_sort(by_own.begin(), by_own.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [own, function] : by_own) row.functions.push_back(function);
    row.score = std::max(row.score, row.own);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<bool> MadeByMany(const Profile& profile) {
  std::vector<uint64_t> owned(profile.symbols.size());
  std::vector<uint64_t> largest(profile.symbols.size());
  for (const ProfiledFunction& function : profile.functions) {
    for (const SymbolCount& row : function.innermost) {
      owned[row.symbol] += row.count;
      largest[row.symbol] = std::max(largest[row.symbol], row.count);
    }
  }
  std::vector<bool> of_many(owned.size());
  for (size_t i = 0; i < owned.size(); ++i) of_many[i] = largest[i] < owned[i] - owned[i] / 2;
  return of_many;
}

OwnedExcess ShareOut(const Profile& profile, const std::vector<SymbolExcess>& excess,
                     const OwnershipOptions& options) {
  const BySymbol symbols = OwnersOf(profile, excess);
  std::vector<OwnedRow> rows = RowsOf(profile, symbols);
  OwnedRow rest = NotInProfile(excess, symbols);
  if (rest.owned > 0) rows.push_back(std::move(rest));
  // Groups come in the order of their counts, so names decide ties for people.
  std::stable_sort(rows.begin(), rows.end(), [](const OwnedRow& a, const OwnedRow& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.own != b.own) return a.own > b.own;
    return a.functions < b.functions;
  });
  OwnedExcess result;
  const int64_t least = rows.empty() ? 0 : MulDiv(rows.front().score, options.keep_percent, 100);
  for (OwnedRow& row : rows) {
    const bool keep = row.score > 0 && row.score >= least;
    if (!keep) {
      ++result.left_out;
      continue;
    }
    result.functions += row.functions.size();
    result.rows.push_back(std::move(row));
  }
  return result;
}

}  // namespace culprit::episode
