// SPDX-License-Identifier: Apache-2.0
#include "episode/whole_calls.h"

#include <algorithm>
#include <map>

namespace culprit::episode {
namespace {

struct Knowledge {
  uint64_t with = 0;  // calls with their operation
  uint64_t without = 0;

  // A few are always without: those whose begin was lost.
  bool lacks() const { return without > with; }
};

using KnowledgeByCall = std::map<std::string_view, Knowledge>;

void Note(std::string_view symbol, uint64_t calls, KnowledgeByCall& known) {
  const std::string_view call = CallOf(symbol);
  if (!trace::OperationArgument(call)) return;
  (call.size() < symbol.size() ? known[call].with : known[call].without) += calls;
}

KnowledgeByCall KnownOf(const Profile& profile) {
  KnowledgeByCall known;
  for (const SymbolTotal& total : profile.totals) {
    Note(profile.symbols.Name(total.symbol), total.count, known);
  }
  return known;
}

KnowledgeByCall KnownOf(const SyscallLog& log, const SymbolTable& symbols) {
  std::vector<uint64_t> counts(symbols.size());
  for (const ThreadLog& thread : log.threads) {
    for (const Syscall& call : thread.calls) ++counts[call.symbol];
  }
  KnowledgeByCall known;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) Note(symbols.Name(static_cast<Symbol>(i)), counts[i], known);
  }
  return known;
}

// The symbol of each one afterwards.
std::vector<Symbol> MapSymbols(const CallNames& calls, SymbolTable& symbols) {
  std::vector<Symbol> to(symbols.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<Symbol>(i);
    const std::string call(CallOf(symbols.Name(to[i])));
    if (calls.contains(call)) to[i] = symbols.Intern(call);
  }
  return to;
}

std::vector<SymbolCount> Mapped(const std::vector<SymbolCount>& counts,
                                const std::vector<Symbol>& to) {
  std::map<Symbol, uint64_t> sums;
  for (const SymbolCount& row : counts) sums[to[row.symbol]] += row.count;
  std::vector<SymbolCount> result;
  for (const auto& [symbol, count] : sums) result.push_back({symbol, count});
  return result;
}

std::vector<SymbolTotal> Mapped(const std::vector<SymbolTotal>& totals,
                                const std::vector<Symbol>& to) {
  std::map<Symbol, SymbolTotal> sums;
  for (const SymbolTotal& row : totals) {
    SymbolTotal& sum = sums[to[row.symbol]];
    sum.symbol = to[row.symbol];
    sum.count += row.count;
    sum.first_half += row.first_half;
    sum.dur_ns += row.dur_ns;
  }
  std::vector<SymbolTotal> result;
  for (const auto& [symbol, total] : sums) result.push_back(total);
  return result;
}

std::vector<EpisodeCount> Mapped(const std::vector<EpisodeCount>& episodes,
                                 const std::vector<Symbol>& to) {
  std::map<Episode, uint64_t> counts;
  for (const EpisodeCount& row : episodes) {
    Episode episode = row.episode;
    for (size_t i = 0; i < episode.length; ++i) episode.symbols[i] = to[episode.symbols[i]];
    uint64_t& count = counts[episode];
    count = std::max(count, row.count);
  }
  std::vector<EpisodeCount> result;
  for (const auto& [episode, count] : counts) result.push_back({episode, count});
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return result;
}

}  // namespace

CallNames CallsToTakeWhole(const Profile& profile, std::span<const SyscallLog* const> logs,
                           bool another_knows) {
  std::vector<KnowledgeByCall> sides = {KnownOf(profile)};
  for (const SyscallLog* log : logs) {
    if (log != nullptr) sides.push_back(KnownOf(*log, profile.symbols));
  }
  std::map<std::string_view, std::pair<bool, bool>> found;  // one lacks it, one has it
  for (const KnowledgeByCall& side : sides) {
    for (const auto& [call, known] : side) {
      (known.lacks() ? found[call].first : found[call].second) = true;
    }
  }
  CallNames calls;
  for (const auto& [call, which] : found) {
    if (which.first && (which.second || another_knows)) calls.emplace(call);
  }
  return calls;
}

void TakeWhole(const CallNames& calls, Profile& profile) {
  if (calls.empty()) return;
  const std::vector<Symbol> to = MapSymbols(calls, profile.symbols);
  profile.totals = Mapped(profile.totals, to);
  for (RoleCalls& role : profile.roles) role.calls = Mapped(role.calls, to);
  for (ProfiledFunction& function : profile.functions) {
    function.innermost = Mapped(function.innermost, to);
    function.inclusive = Mapped(function.inclusive, to);
    function.episodes = Mapped(function.episodes, to);
  }
}

void TakeWhole(const CallNames& calls, SymbolTable& symbols, SyscallLog& log) {
  if (calls.empty()) return;
  const std::vector<Symbol> to = MapSymbols(calls, symbols);
  for (ThreadLog& thread : log.threads) {
    for (Syscall& call : thread.calls) call.symbol = to[call.symbol];
  }
}

}  // namespace culprit::episode
