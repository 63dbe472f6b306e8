// SPDX-License-Identifier: Apache-2.0
#include "episode/episode_match.h"

#include <algorithm>
#include <map>

#include "base/parallel.h"

namespace culprit::episode {
namespace {

struct DistinctUnit {
  uint32_t first = 0;  // index of the first such unit
  uint64_t units = 0;
};

double Increase(const EpisodeMatch& match) {
  const auto before = static_cast<double>(match.profile_count);
  return (static_cast<double>(match.count) - before) / before;
}

bool IsBetter(const MatchedFunction& a, const MatchedFunction& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.matched_share > b.matched_share;
}

// Who has an episode, how often.
using EpisodeIndex = std::map<Episode, std::vector<std::pair<uint32_t, uint64_t>>>;

EpisodeIndex IndexOf(const Profile& profile) {
  EpisodeIndex index;
  for (size_t i = 0; i < profile.functions.size(); ++i) {
    for (const EpisodeCount& row : profile.functions[i].episodes) {
      index[row.episode].emplace_back(static_cast<uint32_t>(i), row.count);
    }
  }
  return index;
}

std::vector<MatchedFunction> Match(const Profile& profile, const EpisodeIndex& index,
                                   const ClosedEpisodes& mined, const DistinctUnit& unit) {
  std::map<uint32_t, std::vector<EpisodeMatch>> matches;
  for (const EpisodeCount& row : mined.episodes) {
    const auto found = index.find(row.episode);
    if (found == index.end()) continue;
    for (const auto& [function, count] : found->second) {
      matches[function].push_back({row.episode, row.count, count});
    }
  }
  std::vector<MatchedFunction> functions;
  for (auto& [function, matched] : matches) {
    uint64_t in_unit = 0;
    uint64_t in_profile = 0;
    for (const EpisodeMatch& match : matched) {
      in_unit += match.count;
      in_profile += match.profile_count;
    }
    if (in_unit < in_profile) continue;
    std::stable_sort(matched.begin(), matched.end(),
                     [](const auto& a, const auto& b) { return Increase(a) > Increase(b); });
    const auto all = static_cast<double>(profile.functions[function].episodes.size());
    functions.push_back({.function = function,
                         .unit = unit.first,
                         .score = Increase(matched.front()),
                         .matched_share = static_cast<double>(matched.size()) / all,
                         .units = unit.units,
                         .matched = matched});
  }
  return functions;
}

}  // namespace

std::vector<Symbol> SymbolsOf(const SyscallLog& log, const Unit& unit) {
  std::vector<Symbol> symbols;
  symbols.reserve(unit.count);
  const std::vector<Syscall>& calls = log.threads[unit.thread].calls;
  for (size_t i = unit.first; i < size_t{unit.first} + unit.count; ++i) {
    symbols.push_back(calls[i].symbol);
  }
  return symbols;
}

EpisodeRanking RankByEpisodes(const Profile& profile, const SyscallLog& log, const Units& units,
                              const Anomalies& anomalies, const EpisodeOptions& options,
                              size_t jobs) {
  std::map<std::vector<Symbol>, DistinctUnit> distinct;
  for (size_t i = 0; i < units.units.size(); ++i) {
    if (anomalies.flags[i] == 0) continue;
    DistinctUnit& unit = distinct[SymbolsOf(log, units.units[i])];
    if (unit.units++ == 0) unit.first = static_cast<uint32_t>(i);
  }
  const EpisodeIndex index = IndexOf(profile);
  std::vector<const std::pair<const std::vector<Symbol>, DistinctUnit>*> work;
  for (const auto& entry : distinct) work.push_back(&entry);
  std::vector<std::vector<MatchedFunction>> found(work.size());
  std::vector<uint8_t> capped(work.size());
  ParallelFor(work.size(), jobs, [&](size_t i) {
    const WeightedSequence sequence = {.symbols = work[i]->first};
    const ClosedEpisodes mined = MineClosedEpisodes({&sequence, 1}, options);
    capped[i] = mined.capped ? 1 : 0;
    found[i] = Match(profile, index, mined, work[i]->second);
  });
  std::map<uint32_t, MatchedFunction> best;
  EpisodeRanking result = {.sequences = work.size()};
  for (size_t i = 0; i < work.size(); ++i) {
    result.capped += capped[i];
    for (MatchedFunction& function : found[i]) {
      const auto [it, is_new] = best.try_emplace(function.function, function);
      if (is_new) continue;
      const uint64_t sum = it->second.units + function.units;
      if (IsBetter(function, it->second)) it->second = std::move(function);
      it->second.units = sum;
    }
  }
  for (auto& [function, row] : best) result.functions.push_back(std::move(row));
  std::stable_sort(result.functions.begin(), result.functions.end(), IsBetter);
  return result;
}

}  // namespace culprit::episode
