// SPDX-License-Identifier: Apache-2.0
//
// Bide: the peer of mine_bench. BIDE (Wang and Han, 2004) adapted as StackMine
// §V says: support is cost; a pattern is printed if no forward and no backward
// extension reaches lambda. Prefix growth with pseudo-projection, BackScan
// pruning, recursive, one thread; straightforward, not tuned. (The paper's
// sentence on the extension check is taken for output only: as a reason to cut
// a branch it would lose patterns.)
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mine/maximal.h"

namespace culprit::bench {

class Bide {
 public:
  Bide(const mine::WeightedSequences& data, int64_t lambda, double max_seconds)
      : data_(data),
        lambda_(lambda),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::nanoseconds(static_cast<int64_t>(max_seconds * 1e9))) {}

  // False: out of time.
  bool Mine() {
    size_t symbols = 0;
    for (const mine::Symbol symbol : data_.symbols) symbols = std::max<size_t>(symbols, symbol + 1);
    seen_.assign(symbols, 0);
    costs_.assign(symbols, 0);
    std::vector<Match> all;
    for (size_t i = 0; i < data_.size(); ++i) all.push_back({i, 0});
    for (const auto& [symbol, cost] : Extensions(all)) Grow(all, symbol, cost);
    return !late_;
  }
  const std::vector<mine::Pattern>& patterns() const { return patterns_; }

 private:
  struct Match {
    size_t sequence;
    size_t end;
  };
  using Symbols = std::vector<std::pair<mine::Symbol, int64_t>>;

  Symbols Extensions(const std::vector<Match>& matches) {
    std::vector<mine::Symbol> touched;
    for (const Match& match : matches) {
      ++now_;
      for (const mine::Symbol symbol : data_.at(match.sequence).subspan(match.end)) {
        if (std::exchange(seen_[symbol], now_) == now_) continue;
        if (costs_[symbol] == 0) touched.push_back(symbol);
        costs_[symbol] += data_.costs[match.sequence];
      }
    }
    Symbols frequent;
    for (const mine::Symbol symbol : touched) {
      if (costs_[symbol] >= lambda_) frequent.emplace_back(symbol, costs_[symbol]);
      costs_[symbol] = 0;
    }
    std::ranges::sort(frequent);
    return frequent;
  }

  void Grow(const std::vector<Match>& parent, mine::Symbol symbol, int64_t cost) {
    late_ = late_ || std::chrono::steady_clock::now() > deadline_;
    if (late_) return;
    std::vector<Match> matches;
    for (const Match& match : parent) {
      const auto rest = data_.at(match.sequence).subspan(match.end);
      const auto at = std::ranges::find(rest, symbol);
      if (at == rest.end()) continue;
      const auto step = static_cast<size_t>(at - rest.begin());
      matches.push_back({match.sequence, match.end + step + 1});
    }
    prefix_.push_back(symbol);
    if (LargestBackward(matches, true) < cost) {
      const Symbols extensions = Extensions(matches);
      for (const auto& [next, next_cost] : extensions) Grow(matches, next, next_cost);
      if (extensions.empty() && LargestBackward(matches, false) < lambda_ && !late_) {
        patterns_.push_back({prefix_, cost});
      }
    }
    prefix_.pop_back();
  }

  // The largest cost of inserting some symbol before some item of the prefix:
  // in the semi-maximum periods (BackScan), or in the maximum ones (closure).
  int64_t LargestBackward(const std::vector<Match>& matches, bool semi) {
    int64_t largest = 0;
    const size_t length = prefix_.size();
    std::vector<std::vector<std::pair<size_t, size_t>>> periods(length);
    for (const Match& match : matches) {
      const auto sequence = data_.at(match.sequence);
      size_t at = 0;
      for (size_t i = 0; i < length; ++i) {
        periods[i].emplace_back(at, 0);
        while (sequence[at] != prefix_[i]) ++at;
        ++at;
      }
      if (!semi) at = sequence.size();
      for (size_t i = length; i-- > 0;) {
        while (sequence[--at] != prefix_[i]) continue;
        periods[i].back().second = at;
      }
    }
    std::vector<mine::Symbol> touched;
    for (size_t i = 0; i < length; ++i) {
      touched.clear();
      for (size_t m = 0; m < matches.size(); ++m) {
        ++now_;
        const auto [begin, end] = periods[i][m];
        for (size_t at = begin; at < end; ++at) {
          const mine::Symbol symbol = data_.at(matches[m].sequence)[at];
          if (std::exchange(seen_[symbol], now_) == now_) continue;
          if (costs_[symbol] == 0) touched.push_back(symbol);
          costs_[symbol] += data_.costs[matches[m].sequence];
        }
      }
      for (const mine::Symbol symbol : touched) largest = std::max(largest, costs_[symbol]);
      for (const mine::Symbol symbol : touched) costs_[symbol] = 0;
    }
    return largest;
  }

  const mine::WeightedSequences& data_;
  int64_t lambda_;
  std::chrono::steady_clock::time_point deadline_;
  bool late_ = false;
  std::vector<mine::Symbol> prefix_;
  std::vector<mine::Pattern> patterns_;
  std::vector<uint64_t> seen_;
  std::vector<int64_t> costs_;
  uint64_t now_ = 0;
};

}  // namespace culprit::bench
