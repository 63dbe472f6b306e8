// SPDX-License-Identifier: Apache-2.0
#include "episode/closed_episodes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/check.h"

namespace culprit::episode {
namespace {

// A place where an episode fits and into no smaller place inside: from its
// first symbol's position to its last's. The state machine, started anywhere,
// completes at the end of the first window that begins after the start. So the
// windows of an episode say all there is to know of it, and those of the
// episode with one more symbol follow from them by one merge.
struct Window {
  uint32_t begin;
  uint32_t end;
};

// All sequences in one line of positions, with a position left free between
// two, so that nothing that ends one touches the next.
class Text {
 public:
  explicit Text(std::span<const WeightedSequence> sequences) {
    uint64_t at = 0;
    for (const WeightedSequence& sequence : sequences) {
      for (const Symbol symbol : sequence.symbols) {
        if (positions_.size() <= symbol) positions_.resize(symbol + size_t{1});
        positions_[symbol].push_back(static_cast<uint32_t>(at++));
        CULPRIT_CHECK(at < UINT32_MAX);
      }
      ends_.push_back(static_cast<uint32_t>(at++));
      weights_.push_back(sequence.weight);
      symbols_ += sequence.weight * sequence.symbols.size();
    }
  }

  size_t alphabet() const { return positions_.size(); }
  uint64_t symbols() const { return symbols_; }
  const std::vector<uint32_t>& positions(Symbol symbol) const { return positions_[symbol]; }
  uint32_t end(size_t sequence) const { return ends_[sequence]; }
  uint64_t weight(size_t sequence) const { return weights_[sequence]; }

 private:
  std::vector<std::vector<uint32_t>> positions_;  // by symbol
  std::vector<uint32_t> ends_;                    // by sequence: one past its last position
  std::vector<uint64_t> weights_;
  uint64_t symbols_ = 0;
};

// The first index from `from` on whose value is above `bound`: doubling steps,
// because the next one is usually near.
size_t FirstAbove(const std::vector<uint32_t>& sorted, size_t from, uint32_t bound) {
  size_t step = 1;
  size_t low = from;
  while (low + step < sorted.size() && sorted[low + step] <= bound) {
    low += step;
    step *= 2;
  }
  const size_t high = std::min(low + step + 1, sorted.size());
  const auto begin = sorted.begin();
  return static_cast<size_t>(std::upper_bound(begin + static_cast<ptrdiff_t>(low),
                                              begin + static_cast<ptrdiff_t>(high), bound) -
                             begin);
}

class Miner {
 public:
  Miner(const Text& text, uint64_t support) : text_(text), support_(support) {}

  ClosedEpisodes Mine(const EpisodeOptions& options) {
    ClosedEpisodes result;
    result.support = support_;
    const size_t longest = std::clamp<size_t>(options.max_length, 1, kMaxEpisode);
    Singles();
    size_t level = 1;
    while (level < longest && level_sizes_.back() > 0) {
      if (candidates_ + level_sizes_.back() * alphabet_.size() > options.max_candidates) {
        result.capped = true;
        break;
      }
      ++level;
      level_sizes_.push_back(0);
      depth_ = level;
      for (const Symbol symbol : alphabet_) Start(symbol);
      if (level == 2) IndexPairs();
    }
    result.bound = result.capped ? level : longest;
    result.candidates = candidates_;
    result.frequent = frequent_.size();
    result.episodes = Closed();
    return result;
  }

 private:
  uint64_t CountSingle(Symbol symbol) const {
    uint64_t count = 0;
    size_t sequence = 0;
    for (const uint32_t position : text_.positions(symbol)) {
      while (text_.end(sequence) <= position) ++sequence;
      count += text_.weight(sequence);
    }
    return count;
  }

  void Singles() {
    level_sizes_.push_back(0);
    for (size_t symbol = 0; symbol < text_.alphabet(); ++symbol) {
      const auto id = static_cast<Symbol>(symbol);
      const uint64_t count = CountSingle(id);
      if (count == 0) continue;
      ++candidates_;
      if (count < support_) continue;
      alphabet_.push_back(id);
      Keep({.symbols = {id}, .length = 1}, count);
    }
  }

  void Keep(const Episode& episode, uint64_t count) {
    frequent_.push_back({episode, count});
    ++level_sizes_.back();
  }

  void IndexPairs() {
    pairs_.assign(text_.alphabet() * text_.alphabet(), false);
    for (const EpisodeCount& row : frequent_) {
      if (row.episode.length == 2) {
        pairs_[row.episode.symbols[0] * text_.alphabet() + row.episode.symbols[1]] = true;
      }
    }
  }

  void Start(Symbol symbol) {
    std::vector<Window>& windows = windows_[0];
    windows.clear();
    for (const uint32_t position : text_.positions(symbol)) windows.push_back({position, position});
    Grow({.symbols = {symbol}, .length = 1});
  }

  // The windows of `episode` are in windows_[its length - 1]. Episodes of the
  // level in work are counted; shorter ones were counted before and are only
  // grown where they were frequent.
  void Grow(const Episode& episode) {
    for (const Symbol symbol : alphabet_) {
      if (!PairsAreFrequent(episode, symbol)) continue;
      Episode longer = episode;
      longer.symbols[longer.length++] = symbol;
      if (longer.length == depth_) {
        ++candidates_;
        const uint64_t count = Count(windows_[episode.length - 1u], symbol);
        if (count >= support_) Keep(longer, count);
        continue;
      }
      Extend(windows_[episode.length - 1u], symbol, windows_[episode.length]);
      if (IsFrequent(longer)) Grow(longer);
    }
  }

  // A part of a frequent episode is frequent, so a pair that is not rules the
  // whole out.
  bool PairsAreFrequent(const Episode& episode, Symbol last) const {
    if (pairs_.empty()) return true;
    return std::all_of(episode.span().begin(), episode.span().end(),
                       [&](Symbol symbol) { return pairs_[symbol * text_.alphabet() + last]; });
  }

  bool IsFrequent(const Episode& episode) const {
    // Levels are kept one after the other, each in the order it was grown in.
    return episode.length == 2 ||
           std::binary_search(frequent_.begin() + LevelBegin(episode.length),
                              frequent_.begin() + LevelBegin(episode.length + 1u),
                              EpisodeCount{episode, 0},
                              [](const auto& a, const auto& b) { return a.episode < b.episode; });
  }

  ptrdiff_t LevelBegin(size_t length) const {
    size_t begin = 0;
    for (size_t i = 0; i + 1 < length; ++i) begin += level_sizes_[i];
    return static_cast<ptrdiff_t>(begin);
  }

  void Extend(const std::vector<Window>& windows, Symbol symbol, std::vector<Window>& out) const {
    out.clear();
    const std::vector<uint32_t>& positions = text_.positions(symbol);
    size_t next = 0;
    size_t sequence = 0;
    for (const Window& window : windows) {
      while (text_.end(sequence) <= window.end) ++sequence;
      if (next < positions.size() && positions[next] <= window.end) {
        next = FirstAbove(positions, next, window.end);
      }
      if (next == positions.size()) break;
      const uint32_t end = positions[next];
      if (end >= text_.end(sequence)) continue;
      if (!out.empty() && out.back().end == end) {
        out.back().begin = window.begin;
      } else {
        out.push_back({window.begin, end});
      }
    }
  }

  // The same merge as a state machine: what begins before the last occurrence
  // ended is skipped.
  uint64_t Count(const std::vector<Window>& windows, Symbol symbol) const {
    const std::vector<uint32_t>& positions = text_.positions(symbol);
    uint64_t count = 0;
    uint64_t free_from = 0;
    size_t next = 0;
    size_t sequence = 0;
    for (const Window& window : windows) {
      if (window.begin < free_from) continue;
      while (text_.end(sequence) <= window.end) ++sequence;
      if (next < positions.size() && positions[next] <= window.end) {
        next = FirstAbove(positions, next, window.end);
      }
      if (next == positions.size()) break;
      if (positions[next] >= text_.end(sequence)) continue;
      count += text_.weight(sequence);
      free_from = uint64_t{positions[next]} + 1;
    }
    return count;
  }

  std::vector<EpisodeCount> Closed() const {
    std::map<Episode, uint64_t> counts;
    for (const EpisodeCount& row : frequent_) counts.emplace(row.episode, row.count);
    std::map<Episode, bool> open;
    for (const auto& [episode, count] : counts) {
      for (size_t left_out = 0; episode.length > 1 && left_out < episode.length; ++left_out) {
        Episode part;
        for (size_t i = 0; i < episode.length; ++i) {
          if (i != left_out) part.symbols[part.length++] = episode.symbols[i];
        }
        if (counts.at(part) == count) open[part] = true;
      }
    }
    std::vector<EpisodeCount> closed;
    for (const auto& [episode, count] : counts) {
      if (!open.contains(episode)) closed.push_back({episode, count});
    }
    std::stable_sort(closed.begin(), closed.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    return closed;
  }

  const Text& text_;
  uint64_t support_;
  std::vector<Symbol> alphabet_;  // the frequent symbols
  std::vector<bool> pairs_;       // [first, second]: frequent; empty before level 3
  std::array<std::vector<Window>, kMaxEpisode> windows_;
  std::vector<EpisodeCount> frequent_;
  std::vector<uint64_t> level_sizes_;
  uint64_t candidates_ = 0;
  size_t depth_ = 1;
};

}  // namespace

bool Episode::Has(Symbol symbol) const {
  return std::find(span().begin(), span().end(), symbol) != span().end();
}

uint64_t EpisodeSupport(uint64_t symbols, double share) {
  const double wanted = std::ceil(static_cast<double>(symbols) * share);
  return static_cast<uint64_t>(std::clamp(wanted, 2.0, 10.0));
}

ClosedEpisodes MineClosedEpisodes(std::span<const WeightedSequence> sequences,
                                  const EpisodeOptions& options) {
  const Text text(sequences);
  const uint64_t support =
      options.support > 0 ? options.support : EpisodeSupport(text.symbols(), options.share);
  return Miner(text, support).Mine(options);
}

uint64_t CountEpisode(std::span<const Symbol> sequence, const Episode& episode) {
  uint64_t count = 0;
  size_t state = 0;
  for (const Symbol symbol : sequence) {
    if (symbol != episode.symbols[state]) continue;
    if (++state < episode.length) continue;
    state = 0;
    ++count;
  }
  return count;
}

std::vector<WeightedSequence> MergeEqual(std::vector<WeightedSequence> sequences) {
  std::vector<WeightedSequence> merged;
  merged.reserve(sequences.size());  // the views below point into it
  std::unordered_map<std::u16string_view, size_t> known;
  for (WeightedSequence& sequence : sequences) {
    merged.push_back(std::move(sequence));
    const std::vector<Symbol>& symbols = merged.back().symbols;
    static_assert(sizeof(Symbol) == sizeof(char16_t));
    const std::u16string_view key(reinterpret_cast<const char16_t*>(symbols.data()),
                                  symbols.size());
    const auto [it, is_new] = known.try_emplace(key, merged.size() - 1);
    if (is_new) continue;
    merged[it->second].weight += merged.back().weight;
    merged.pop_back();
  }
  return merged;
}

}  // namespace culprit::episode
