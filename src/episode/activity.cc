// SPDX-License-Identifier: Apache-2.0
#include "episode/activity.h"

#include <algorithm>

#include "episode/inference.h"

namespace culprit::episode {
namespace {

constexpr size_t kRowsWithEpisodes = 10;
constexpr size_t kEpisodesTried = 16;
constexpr size_t kEpisodesShown = 5;
// What is only shown is looked for in this many calls, not in millions.
constexpr size_t kCallsLookedAt = 200'000;

bool HasAny(const Episode& episode, const std::vector<bool>& wanted) {
  return std::any_of(episode.span().begin(), episode.span().end(),
                     [&](Symbol symbol) { return symbol < wanted.size() && wanted[symbol]; });
}

void Widen(int64_t time_ns, InferredFunction& function) {
  if (!function.first_ns || time_ns < *function.first_ns) function.first_ns = time_ns;
  if (!function.last_ns || time_ns > *function.last_ns) function.last_ns = time_ns;
}

}  // namespace

std::vector<uint32_t> Activity::UnitsWith(const std::vector<bool>& wanted) const {
  std::vector<uint32_t> abnormal;
  std::vector<uint32_t> any;
  for (size_t i = 0; i < units_.units.size(); ++i) {
    const Unit& unit = units_.units[i];
    const Syscall* const calls = &log_.threads[unit.thread].calls[unit.first];
    const bool has = std::any_of(calls, calls + unit.count,
                                 [&](const Syscall& call) { return wanted[call.symbol]; });
    if (!has) continue;
    any.push_back(static_cast<uint32_t>(i));
    if (anomalies_.flags[i] != 0) abnormal.push_back(static_cast<uint32_t>(i));
  }
  return abnormal.empty() ? any : abnormal;
}

void Activity::MatchEpisodes(const OwnedRow& row, const std::vector<bool>& wanted,
                             InferredFunction& function) const {
  std::vector<EpisodeMatch> matches;
  for (const uint32_t index : row.functions) {
    for (const EpisodeCount& known : profile_.functions[index].episodes) {
      if (matches.size() == kEpisodesTried) break;
      if (HasAny(known.episode, wanted)) matches.push_back({known.episode, 0, known.count});
    }
  }
  size_t looked_at = 0;
  for (const uint32_t unit : UnitsWith(wanted)) {
    if (looked_at > kCallsLookedAt) break;
    const std::vector<Symbol> symbols = SymbolsOf(log_, units_.units[unit]);
    looked_at += symbols.size();
    for (EpisodeMatch& match : matches) match.count += CountEpisode(symbols, match.episode);
  }
  std::erase_if(matches, [](const EpisodeMatch& match) { return match.count == 0; });
  std::stable_sort(matches.begin(), matches.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  function.matched = matches.size();
  if (matches.size() > kEpisodesShown) matches.resize(kEpisodesShown);
  function.episodes = std::move(matches);
}

void Activity::MineEpisodes(const std::vector<bool>& wanted, InferredFunction& function) const {
  std::vector<WeightedSequence> sequences;
  size_t looked_at = 0;
  for (const uint32_t unit : UnitsWith(wanted)) {
    if (looked_at > kCallsLookedAt) break;
    sequences.push_back({SymbolsOf(log_, units_.units[unit])});
    looked_at += sequences.back().symbols.size();
    if (sequences.back().symbols.size() > kCallsLookedAt) {
      sequences.back().symbols.resize(kCallsLookedAt);
    }
  }
  const ClosedEpisodes mined = MineClosedEpisodes(MergeEqual(std::move(sequences)), options_);
  for (const EpisodeCount& row : mined.episodes) {
    if (function.episodes.size() == kEpisodesShown) break;
    if (row.episode.length > 1 && HasAny(row.episode, wanted)) {
      function.episodes.push_back({row.episode, row.count, 0});
    }
  }
}

void Activity::Describe(const OwnedRow& row, InferredFunction& function) {
  std::vector<bool> wanted(profile_.symbols.size());
  for (const Symbol symbol : row.symbols) wanted[symbol] = true;
  const std::vector<uint32_t> units = UnitsWith(wanted);
  function.unit_count = units.size();
  function.units.assign(units.begin(), units.begin() + static_cast<ptrdiff_t>(
                                                           std::min(units.size(), kMaxUnitsShown)));
  for (const uint32_t index : units) {
    const Unit& unit = units_.units[index];
    const Syscall* const calls = &log_.threads[unit.thread].calls[unit.first];
    for (size_t i = 0; i < unit.count; ++i) {
      if (wanted[calls[i].symbol]) Widen(calls[i].time_ns, function);
    }
  }
  if (described_++ >= kRowsWithEpisodes) return;
  if (row.in_profile()) {
    MatchEpisodes(row, wanted, function);
  } else {
    MineEpisodes(wanted, function);
  }
}

void SetActiveTimes(const SyscallLog& log, const Unit& unit, InferredFunction& function) {
  const std::vector<Syscall>& calls = log.threads[unit.thread].calls;
  Widen(calls[unit.first].time_ns, function);
  Widen(calls[unit.first + unit.count - 1].time_ns, function);
}

}  // namespace culprit::episode
