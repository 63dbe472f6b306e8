// SPDX-License-Identifier: Apache-2.0
#include "mine/prefix_miner.h"

#include <algorithm>
#include <utility>

namespace culprit::mine {
namespace {

// How many of the latest patterns are tried as containers of what is at hand.
constexpr size_t kRecent = 8;

}  // namespace

PrefixMiner::PrefixMiner(const Database& data, size_t item_count, int64_t lambda,
                         Allowance& allowance)
    : data_(data),
      item_count_(item_count),
      lambda_(lambda),
      allowance_(allowance),
      item_costs_(item_count),
      seen_(item_count) {}

void PrefixMiner::Mine(SequenceList& found) {
  MemoryClaim memory(allowance_.budget(), data_.Bytes());
  frames_.push_back({0, 0, 0});
  for (size_t i = 0; i < data_.size(); ++i) matches_.push_back({static_cast<uint32_t>(i), 0});
  if (MatchedCost() >= lambda_) FindExtensions();
  while (!frames_.empty() && !allowance_.Stopped()) {
    Frame& frame = frames_.back();
    if (frame.next_extension == extensions_.size()) {
      Pop();
      continue;
    }
    const Item item = extensions_[frame.next_extension++];
    if (frames_.size() % 64 == 0) {
      memory.Resize(data_.Bytes() + matches_.size() * sizeof(Match) + found.Bytes());
    }
    Extend(item);
    DropKnown(found);
    if (MatchedCost() < lambda_ || AlwaysHoldsMore() || EndsInOne(found)) {
      Pop();
      continue;
    }
    FindExtensions();
    if (extensions_.size() == frames_.back().extensions_begin) {
      Emit(found);
      Pop();
    }
  }
}

void PrefixMiner::Pop() {
  matches_.resize(frames_.back().matches_begin);
  extensions_.resize(frames_.back().extensions_begin);
  frames_.pop_back();
  if (!prefix_.empty()) prefix_.pop_back();
}

void PrefixMiner::Extend(Item item) {
  const size_t begin = frames_.back().matches_begin;
  const size_t end = matches_.size();
  for (size_t m = begin; m < end; ++m) {
    const Match match = matches_[m];
    const std::span<const Item> suffix = Suffix(match);
    const auto at = std::ranges::find(suffix, item);
    if (at == suffix.end()) continue;
    matches_.push_back(
        {match.sequence, match.end + static_cast<uint32_t>(at - suffix.begin()) + 1});
  }
  prefix_.push_back(item);
  frames_.push_back({end, extensions_.size(), extensions_.size()});
}

int64_t PrefixMiner::MatchedCost() const {
  int64_t cost = 0;
  for (const Match& match : Matches()) cost += data_.costs[match.sequence];
  return cost;
}

// A sequence that, from the prefix on, lies within a found pattern supports
// nothing new.
void PrefixMiner::DropKnown(const SequenceList& found) {
  const size_t begin = frames_.back().matches_begin;
  for (size_t f = found.size() - std::min(found.size(), kRecent); f < found.size(); ++f) {
    std::span<const Item> rest = found.at(f);
    size_t matched = 0;
    while (matched < prefix_.size() && !rest.empty()) {
      if (rest.front() == prefix_[matched]) ++matched;
      rest = rest.subspan(1);
    }
    if (matched < prefix_.size()) continue;
    const auto dropped =
        std::remove_if(matches_.begin() + static_cast<ptrdiff_t>(begin), matches_.end(),
                       [&](const Match& match) { return IsSubsequence(Suffix(match), rest); });
    matches_.erase(dropped, matches_.end());
  }
}

// Period i of a prefix in a sequence: from the end of the first instance of its
// first i - 1 items to the last place item i can have within the first instance
// of the whole prefix. An item that is in period i of all sequences can be
// inserted there into every pattern that begins with the prefix, for nothing.
void PrefixMiner::SemiMaximumPeriods(std::span<const Item> sequence) {
  const size_t length = prefix_.size();
  first_ends_.assign(length + 1, 0);
  last_starts_.assign(length, 0);
  size_t at = 0;
  for (size_t i = 0; i < length; ++i) {
    while (sequence[at] != prefix_[i]) ++at;
    first_ends_[i + 1] = static_cast<uint32_t>(++at);
  }
  for (size_t i = length; i-- > 0;) {
    do {
      --at;
    } while (sequence[at] != prefix_[i]);
    last_starts_[i] = static_cast<uint32_t>(at);
  }
}

bool PrefixMiner::AlwaysHoldsMore() {
  // Candidates (period, item) of the first sequence, thinned by each other one.
  std::vector<std::pair<uint32_t, Item>> always;
  bool first = true;
  for (const Match& match : Matches()) {
    const std::span<const Item> sequence = data_.sequences.at(match.sequence);
    SemiMaximumPeriods(sequence);
    if (first) {
      for (uint32_t i = 0; i < prefix_.size(); ++i) {
        ++now_;
        for (uint32_t at = first_ends_[i]; at < last_starts_[i]; ++at) {
          if (std::exchange(seen_[sequence[at]], now_) != now_)
            always.emplace_back(i, sequence[at]);
        }
      }
      first = false;
    } else {
      uint32_t period = static_cast<uint32_t>(prefix_.size());
      std::erase_if(always, [&](const std::pair<uint32_t, Item>& candidate) {
        if (candidate.first != period) {
          period = candidate.first;
          ++now_;
          for (uint32_t at = first_ends_[period]; at < last_starts_[period]; ++at) {
            seen_[sequence[at]] = now_;
          }
        }
        return seen_[candidate.second] != now_;
      });
    }
    if (always.empty()) return false;
  }
  return true;
}

// Look-ahead: one sequence reaches lambda alone, and to its end it holds all
// that the others have left.
bool PrefixMiner::EndsInOne(SequenceList& found) const {
  const auto matches = Matches();
  const auto heaviest = std::ranges::max_element(
      matches, {}, [&](const Match& match) { return data_.costs[match.sequence]; });
  if (data_.costs[heaviest->sequence] < lambda_) return false;
  const std::span<const Item> rest = Suffix(*heaviest);
  for (const Match& match : matches) {
    if (!IsSubsequence(Suffix(match), rest)) return false;
  }
  found.items.insert(found.items.end(), prefix_.begin(), prefix_.end());
  found.Add(rest);
  allowance_.Found();
  return true;
}

void PrefixMiner::FindExtensions() {
  std::ranges::fill(item_costs_, 0);
  for (const Match& match : Matches()) {
    ++now_;
    for (const Item item : Suffix(match)) {
      if (std::exchange(seen_[item], now_) != now_) {
        item_costs_[item] += data_.costs[match.sequence];
      }
    }
  }
  Frame& frame = frames_.back();
  frame.extensions_begin = extensions_.size();
  frame.next_extension = extensions_.size();
  for (Item item = 0; item < item_count_; ++item) {
    if (item_costs_[item] >= lambda_) extensions_.push_back(item);
  }
  // The costliest first: long patterns early, to cut by.
  std::sort(
      extensions_.begin() + static_cast<ptrdiff_t>(frame.extensions_begin), extensions_.end(),
      [&](Item a, Item b) { return std::pair(item_costs_[b], a) < std::pair(item_costs_[a], b); });
}

void PrefixMiner::Emit(SequenceList& found) {
  for (size_t f = found.size() - std::min(found.size(), kRecent); f < found.size(); ++f) {
    if (IsSubsequence(prefix_, found.at(f))) return;
  }
  found.Add(prefix_);
  allowance_.Found();
}

}  // namespace culprit::mine
