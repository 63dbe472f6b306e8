// SPDX-License-Identifier: Apache-2.0
#include "episode/stream.h"

#include <algorithm>
#include <map>

#include "episode/inference.h"

namespace culprit::episode {
namespace {

constexpr uint64_t kTooFewCalls = 20;
constexpr double kUnlikeMix = 0.35;

std::vector<StreamRow> RowsOf(const Profile& profile, const OwnedExcess& owned, double unit) {
  std::vector<StreamRow> rows;
  for (const OwnedRow& row : owned.rows) {
    StreamRow& out = rows.emplace_back();
    out.function = row.in_profile() ? profile.functions[row.functions.front()].name.Label()
                                    : std::string(kNotInProfile);
    for (size_t i = 1; i < row.functions.size(); ++i) {
      out.co_owners.push_back(profile.functions[row.functions[i]].name.Label());
    }
    out.score = static_cast<double>(row.score) / unit;
    out.own = static_cast<double>(row.own) / unit;
    out.symbols = row.symbols;
  }
  return rows;
}

bool SameFunctions(const std::vector<StreamRow>& a, const std::vector<StreamRow>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StreamRow& left, const StreamRow& right) {
                      return left.function == right.function;
                    });
}

// What the comparison rests on: nothing of it holds where there is no work.
void Warn(const Load& load, std::span<const Load> normals, StreamRanking& ranking) {
  if (load.calls < kTooFewCalls) {
    ranking.warnings.push_back("only " + std::to_string(load.calls) +
                               " system calls in the window: too few to compare");
  } else if (ranking.comparison.scale_buggy == 0) {
    ranking.warnings.emplace_back(
        "most kinds of calls of the normal side do not occur: work has stopped, or the normal side "
        "is of other work; all that goes on counts as too much");
  } else if (ranking.comparison.mix_distance > kUnlikeMix) {
    ranking.warnings.emplace_back(
        "the mix of work differs from the normal side: functions of other work may be named");
  }
  for (const Load& normal : normals) {
    if (normal.calls >= kTooFewCalls) continue;
    ranking.warnings.push_back("the normal side has only " + std::to_string(normal.calls) +
                               " system calls: too few to compare with");
  }
}

}  // namespace

void LoadWindow::Add(int64_t from_ns, int64_t to_ns, int64_t counted_ns,
                     std::vector<CountedCall> calls) {
  slices_.push_back({from_ns, to_ns, counted_ns, std::move(calls)});
  while (slices_.front().to_ns <= to_ns - window_ns_) slices_.pop_front();
}

Load LoadWindow::Sum(const std::vector<CountedCall>& open) const {
  Load load;
  load.has_durations = true;
  std::map<std::pair<Symbol, uint16_t>, uint64_t> errors;
  const auto at = [&](Symbol symbol) -> SymbolLoad& {
    if (load.symbols.size() <= symbol) load.symbols.resize(symbol + size_t{1});
    return load.symbols[symbol];
  };
  for (const Slice& slice : slices_) {
    load.wall_ns += slice.counted_ns;
    for (const CountedCall& call : slice.calls) {
      SymbolLoad& symbol = at(call.symbol);
      symbol.calls += call.calls;
      load.calls += call.calls;
      symbol.dur_ns += call.dur_ns;
      if (call.error == 0) continue;
      symbol.failed += call.calls;
      errors[{call.symbol, call.error}] += call.calls;
    }
  }
  // A call that lasts longer than the window is in it all the time, no longer.
  for (const CountedCall& call : open) {
    at(call.symbol).dur_ns +=
        std::min(call.dur_ns, static_cast<int64_t>(call.calls) * load.wall_ns);
  }
  std::vector<uint64_t> most(load.symbols.size());
  for (const auto& [key, count] : errors) {
    if (count <= most[key.first]) continue;
    most[key.first] = count;
    load.symbols[key.first].error = key.second;
  }
  return load;
}

bool StreamRanking::SameNames(const StreamRanking& other) const {
  return SameFunctions(functions, other.functions);
}

StreamRanking RankStream(const Profile& profile, const Load& load, std::span<const Load> normals,
                         const CompareOptions& compare, const OwnershipOptions& ownership) {
  StreamRanking ranking;
  ranking.comparison = Compare(load, normals, profile.symbols, compare, MadeByMany(profile));
  const OwnedExcess owned = ShareOut(profile, ranking.comparison.calls, ownership);
  ranking.functions = RowsOf(profile, owned, 1000);
  ranking.left_out = owned.left_out;
  const bool times = std::all_of(normals.begin(), normals.end(),
                                 [](const Load& normal) { return normal.has_durations; });
  if (load.has_durations && times) {
    ranking.time = RowsOf(profile, ShareOut(profile, ranking.comparison.time, ownership), 1);
  }
  if (load.calls < kTooFewCalls) {
    ranking.functions.clear();
    ranking.time.clear();
  }
  Warn(load, normals, ranking);
  return ranking;
}

}  // namespace culprit::episode
