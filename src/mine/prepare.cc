// SPDX-License-Identifier: Apache-2.0
#include "mine/prepare.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/parallel.h"

namespace culprit::mine {
namespace {

constexpr size_t kParts = SequenceQueue::kParts;
constexpr size_t kAtOnce = 32;           // sequences given to the queue
constexpr size_t kWorthThreads = 5'000;  // sequences; below, starting threads costs more

// A part of the input for each of `parts`, on several threads if that pays.
template <typename Body>
void ForEachPart(size_t sequences, size_t parts, size_t jobs, const Body& body) {
  ParallelFor(parts, sequences < kWorthThreads ? 1 : jobs, [&](size_t part) {
    body(part, sequences * part / parts, sequences * (part + 1) / parts);
  });
}

// Symbols as small numbers. Where they are small already, themselves; else
// their place among the distinct ones.
class SymbolNumbers {
 public:
  SymbolNumbers(const WeightedSequences& input, size_t jobs) {
    if (input.symbols.empty()) return;
    std::array<Symbol, kParts> largest = {};
    ForEachPart(input.size(), kParts, jobs, [&](size_t part, size_t begin, size_t end) {
      Symbol most = 0;
      for (size_t i = begin; i < end; ++i) {
        for (const Symbol symbol : input.at(i)) most = std::max(most, symbol);
      }
      largest[part] = most;
    });
    count_ = static_cast<size_t>(*std::ranges::max_element(largest)) + 1;
    if (count_ <= input.symbols.size() + (size_t{1} << 20U)) return;
    distinct_ = input.symbols;
    std::ranges::sort(distinct_);
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
    count_ = distinct_.size();
  }

  size_t count() const { return count_; }
  Item Of(Symbol symbol) const {
    if (distinct_.empty()) return symbol;
    return static_cast<Item>(std::ranges::lower_bound(distinct_, symbol) - distinct_.begin());
  }
  Symbol At(Item number) const { return distinct_.empty() ? number : distinct_[number]; }

 private:
  size_t count_ = 0;
  LargeVector<Symbol> distinct_;
};

std::vector<int64_t> SymbolCosts(const WeightedSequences& input, const SymbolNumbers& numbers,
                                 size_t jobs) {
  // A table of all symbols for every part: one if it is large.
  const size_t parts = numbers.count() > (size_t{1} << 18U) ? 1 : kParts;
  std::vector<std::vector<int64_t>> costs(parts);
  ForEachPart(input.size(), parts, jobs, [&](size_t part, size_t begin, size_t end) {
    costs[part].assign(numbers.count(), 0);
    std::vector<size_t> seen_in(numbers.count(), input.size());
    for (size_t i = begin; i < end; ++i) {
      for (const Symbol symbol : input.at(i)) {
        const Item number = numbers.Of(symbol);
        if (seen_in[number] == i) continue;
        seen_in[number] = i;
        costs[part][number] += input.costs[i];
      }
    }
  });
  for (size_t part = 1; part < parts; ++part) {
    std::ranges::transform(costs[0], costs[part], costs[0].begin(), std::plus<>());
  }
  return std::move(costs[0]);
}

// What may follow (precede) an item: kUnseen, the only one, or kDropped.
class Neighbours {
 public:
  Neighbours(const WeightedSequences& input, const SymbolNumbers& numbers,
             const std::vector<Item>& items, size_t item_count, size_t jobs) {
    const size_t parts = item_count > (size_t{1} << 18U) ? 1 : kParts;
    std::vector<Neighbours> found(parts);
    ForEachPart(input.size(), parts, jobs, [&](size_t part, size_t begin, size_t end) {
      found[part].next_.assign(item_count, kUnseen);
      found[part].previous_.assign(item_count, kUnseen);
      for (size_t i = begin; i < end; ++i) {
        if (input.costs[i] != 0) found[part].AddSequence(input.at(i), numbers, items);
      }
    });
    *this = std::move(found[0]);
    for (size_t part = 1; part < parts; ++part) {
      for (Item item = 0; item < item_count; ++item) {
        Note(next_[item], found[part].next_[item]);
        Note(previous_[item], found[part].previous_[item]);
      }
    }
  }
  Neighbours() = default;

  // The item that always comes after this one and never without it.
  Item Successor(Item item) const {
    const Item after = next_[item];
    return after < kUnseen && after != item && previous_[after] == item ? after : kDropped;
  }

 private:
  static constexpr Item kUnseen = kDropped - 1;

  void AddSequence(std::span<const Symbol> sequence, const SymbolNumbers& numbers,
                   const std::vector<Item>& items) {
    Item previous = kDropped;
    for (const Symbol symbol : sequence) {
      const Item item = items[numbers.Of(symbol)];
      if (item == kDropped) continue;
      Note(previous_[item], previous);
      if (previous != kDropped) Note(next_[previous], item);
      previous = item;
    }
    if (previous != kDropped) Note(next_[previous], kDropped);
  }
  static void Note(Item& only, Item seen) {
    if (only == seen || only == kDropped || seen == kUnseen) return;
    only = only == kUnseen ? seen : kDropped;
  }

  std::vector<Item> next_;
  std::vector<Item> previous_;
};

// Items joined into chains, which keep the order of their heads; returns for
// each the number of the chain it heads, or kDropped if it is inside one.
std::vector<Item> Chain(const Neighbours& neighbours, const std::vector<Symbol>& symbols,
                        SequenceList& chains) {
  std::vector<uint8_t> inside(symbols.size());
  for (Item item = 0; item < symbols.size(); ++item) {
    const Item after = neighbours.Successor(item);
    if (after != kDropped) inside[after] = 1;
  }
  std::vector<Item> numbers(symbols.size(), kDropped);
  for (Item item = 0; item < symbols.size(); ++item) {
    if (inside[item] != 0) continue;
    numbers[item] = static_cast<Item>(chains.size());
    for (Item at = item; at != kDropped; at = neighbours.Successor(at)) {
      chains.items.push_back(symbols[at]);
    }
    chains.End();
  }
  return numbers;
}

// What the branch of each item has to read: the items from it on, of all sequences
// that hold it.
std::vector<uint64_t> BranchSizes(const WeightedSequences& input, const SymbolNumbers& numbers,
                                  const std::vector<Item>& items, size_t item_count, size_t jobs) {
  const size_t parts = item_count > (size_t{1} << 18U) ? 1 : kParts;
  std::vector<std::vector<uint64_t>> sizes(parts);
  ForEachPart(input.size(), parts, jobs, [&](size_t part, size_t begin, size_t end) {
    sizes[part].assign(item_count, 0);
    std::vector<Item> sequence;
    for (size_t i = begin; i < end; ++i) {
      if (input.costs[i] == 0) continue;
      sequence.clear();
      for (const Symbol symbol : input.at(i)) {
        const Item item = items[numbers.Of(symbol)];
        if (item != kDropped) sequence.push_back(item);
      }
      std::ranges::sort(sequence, std::greater<>());
      for (size_t at = 0; at < sequence.size(); ++at) {
        const bool last = at + 1 == sequence.size() || sequence[at + 1] != sequence[at];
        if (last) sizes[part][sequence[at]] += at + 1;
      }
    }
  });
  for (size_t part = 1; part < parts; ++part) {
    std::ranges::transform(sizes[0], sizes[part], sizes[0].begin(), std::plus<>());
  }
  return std::move(sizes[0]);
}

ItemRange RangeOf(const Piece& piece, const std::vector<uint64_t>& sizes) {
  const uint64_t all = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  // Rounded to whole steps first: no product that could overflow.
  const uint64_t step = all / piece.count + 1;
  const auto first_beyond = [&](uint64_t index) {
    uint64_t before = 0;
    Item item = 0;
    while (item < sizes.size() && before / step < index) before += sizes[item++];
    return index >= piece.count ? static_cast<Item>(sizes.size()) : item;
  };
  return {first_beyond(piece.index), first_beyond(piece.index + 1)};
}

void Fill(const WeightedSequences& input, const SymbolNumbers& numbers,
          const std::vector<Item>& items, const ItemRange& range, size_t jobs,
          SequenceQueue& queue) {
  // What two parts have in common is in the queue twice until it is taken: no
  // more of them than threads.
  const size_t parts = std::min(jobs == 0 ? HardwareThreads() : jobs, kParts);
  ForEachPart(input.size(), parts, jobs, [&](size_t part, size_t begin, size_t end) {
    Database some;
    for (size_t i = begin; i < end; ++i) {
      if (input.costs[i] == 0) continue;
      SequenceList& list = some.sequences;
      const std::span<const Symbol> symbols = input.at(i);
      size_t size = list.begins.back();
      list.items.resize(size + symbols.size());
      bool in_range = false;
      for (const Symbol symbol : symbols) {
        const Item item = items[numbers.Of(symbol)];
        list.items[size] = item;
        size += item == kDropped || item < range.first ? 0 : 1;
        in_range = in_range || (item >= range.first && item < range.end);
      }
      if (!in_range) size = list.begins.back();
      list.items.resize(size);
      if (size == list.begins.back()) continue;
      list.End();
      some.costs.push_back(input.costs[i]);
      if (some.size() < kAtOnce) continue;
      queue.AddFirst(part, some);
      list.Clear();
      some.costs.clear();
    }
    queue.AddFirst(part, some);
  });
  queue.EndFirst();
}

}  // namespace

Prepared Prepare(const WeightedSequences& input, int64_t lambda, size_t jobs, const Piece& piece) {
  const SymbolNumbers numbers(input, jobs);
  const std::vector<int64_t> costs = SymbolCosts(input, numbers, jobs);
  std::vector<Item> kept;
  for (Item number = 0; number < numbers.count(); ++number) {
    if (costs[number] >= lambda) kept.push_back(number);
  }
  std::ranges::sort(kept, {}, [&](Item number) { return std::pair(costs[number], number); });
  std::vector<Item> items(numbers.count(), kDropped);
  for (Item rank = 0; rank < kept.size(); ++rank) items[kept[rank]] = rank;

  const Neighbours neighbours(input, numbers, items, kept.size(), jobs);
  std::vector<Symbol> symbols;
  for (const Item number : kept) symbols.push_back(numbers.At(number));
  SequenceList chains;
  const std::vector<Item> heads = Chain(neighbours, symbols, chains);
  for (Item& item : items) item = item == kDropped ? kDropped : heads[item];
  ItemRange range{0, static_cast<Item>(chains.size())};
  if (piece.count > 1) {
    range = RangeOf(piece, BranchSizes(input, numbers, items, chains.size(), jobs));
  }
  Prepared prepared = {SequenceQueue(chains.size(), range), std::move(chains), range};
  Fill(input, numbers, items, range, jobs, prepared.queue);
  return prepared;
}

}  // namespace culprit::mine
