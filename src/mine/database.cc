// SPDX-License-Identifier: Apache-2.0
#include "mine/database.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/parallel.h"
#include "mine/hash.h"

namespace culprit::mine {
namespace {

constexpr size_t kParts = 64;  // of work; fixed, so that nothing depends on threads
constexpr size_t kPartsAtOnce = 8;
constexpr size_t kWorthThreads = 10'000;  // sequences; below, starting threads costs more
constexpr uint64_t kNothing = 0;

struct Part {
  size_t begin;
  size_t end;
};
Part PartOf(size_t count, size_t parts, size_t part) {
  return {count * part / parts, count * (part + 1) / parts};
}

// Symbols as small numbers. Where they are small already, themselves; else
// their place among the distinct ones.
class SymbolNumbers {
 public:
  explicit SymbolNumbers(const std::vector<Symbol>& symbols) {
    const auto largest = std::ranges::max_element(symbols);
    if (largest == symbols.end()) return;
    count_ = static_cast<size_t>(*largest) + 1;
    if (count_ <= symbols.size() + (size_t{1} << 20U)) return;
    distinct_ = symbols;
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
  std::vector<Symbol> distinct_;
};

std::vector<int64_t> SymbolCosts(const WeightedSequences& input, const SymbolNumbers& numbers,
                                 size_t jobs) {
  // A table of all symbols for every part: few parts, and one if it is large.
  const size_t parts = numbers.count() > (size_t{1} << 18U) ? 1 : 8;
  std::vector<std::vector<int64_t>> costs(parts);
  ParallelFor(parts, input.size() < kWorthThreads ? 1 : jobs, [&](size_t p) {
    costs[p].assign(numbers.count(), 0);
    std::vector<size_t> seen_in(numbers.count(), input.size());
    const Part part = PartOf(input.size(), parts, p);
    for (size_t i = part.begin; i < part.end; ++i) {
      for (const Symbol symbol : input.at(i)) {
        const Item number = numbers.Of(symbol);
        if (seen_in[number] == i) continue;
        seen_in[number] = i;
        costs[p][number] += input.costs[i];
      }
    }
  });
  for (size_t p = 1; p < parts; ++p) {
    std::ranges::transform(costs[0], costs[p], costs[0].begin(), std::plus<>());
  }
  return std::move(costs[0]);
}

// Sequences source.at(i), each symbol mapped by source.Map to an item or
// kDropped, equal ones merged, in an order given by content.
template <typename Source>
class Merger {
 public:
  Merger(const Source& source, size_t jobs)
      : source_(source), jobs_(source.Size() < kWorthThreads ? 1 : jobs) {}

  Database Merge() {
    FindKeys();
    Database all;
    size_t most_items = 0;
    for (const Keyed& keyed : order_) most_items += source_.At(keyed.index).size();
    // More than is needed, at most: pages never written cost nothing.
    all.sequences.items.reserve(most_items);
    all.sequences.begins.reserve(order_.size() + 1);
    all.costs.reserve(order_.size());
    // A few parts at a time, so that little is held twice.
    std::vector<Database> merged(kPartsAtOnce);
    for (size_t first = 0; first < kParts; first += kPartsAtOnce) {
      ParallelFor(kPartsAtOnce, jobs_, [&](size_t p) { merged[p] = MergePart(first + p); });
      for (Database& part : merged) {
        for (size_t i = 0; i < part.size(); ++i) all.sequences.Add(part.sequences.at(i));
        all.costs.insert(all.costs.end(), part.costs.begin(), part.costs.end());
        part = {};
      }
    }
    return all;
  }

 private:
  struct Keyed {
    uint64_t key;
    uint32_t index;
    bool operator<(const Keyed& other) const {
      return std::tie(key, index) < std::tie(other.key, other.index);
    }
  };

  // By the two least items first: the sequences that hold an item then lie
  // together, which is how the branches read them.
  uint64_t Key(size_t i) const {
    if (source_.Cost(i) == 0) return kNothing;
    uint64_t hash = 0;
    Item least = kDropped;
    Item second = kDropped;
    for (const uint32_t symbol : source_.At(i)) {
      const Item item = source_.Map(symbol);
      if (item == kDropped) continue;
      hash = MixHash(hash, item);
      second = std::min(second, std::max(least, item));
      least = std::min(least, item);
    }
    if (least == kDropped) return kNothing;
    return (std::min<uint64_t>(least, 0xFFFE) + 1) << 48U |
           std::min<uint64_t>(second, 0xFFFF) << 32U | (hash & 0xFFFFFFFFU);
  }

  void FindKeys() {
    const size_t count = source_.Size();
    CULPRIT_CHECK(count < std::numeric_limits<uint32_t>::max());
    std::vector<uint64_t> keys(count);
    ParallelFor(kParts, jobs_, [&](size_t p) {
      const Part part = PartOf(count, kParts, p);
      for (size_t i = part.begin; i < part.end; ++i) keys[i] = Key(i);
    });
    // What is empty, or costs nothing, keys to kNothing and is left out.
    begins_.assign(kParts + 1, 0);
    for (const uint64_t key : keys) {
      if (key != kNothing) ++begins_[key % kParts + 1];
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    order_.resize(begins_.back());
    std::vector<size_t> next = begins_;
    for (size_t i = 0; i < count; ++i) {
      if (keys[i] == kNothing) continue;
      order_[next[keys[i] % kParts]++] = {keys[i], static_cast<uint32_t>(i)};
    }
  }

  Database MergePart(size_t p) {
    Database merged;
    const auto end = order_.begin() + static_cast<ptrdiff_t>(begins_[p + 1]);
    auto run = order_.begin() + static_cast<ptrdiff_t>(begins_[p]);
    std::sort(run, end);
    while (run != end) {
      auto run_end = run;
      while (run_end != end && run_end->key == run->key) ++run_end;
      MergeRun(std::span(run, run_end), merged);
      run = run_end;
    }
    return merged;
  }

  // Of one key; nearly always all are equal.
  void MergeRun(std::span<const Keyed> run, Database& merged) const {
    const size_t first = merged.size();
    SequenceList& list = merged.sequences;
    for (const Keyed& keyed : run) {
      for (const uint32_t symbol : source_.At(keyed.index)) {
        const Item item = source_.Map(symbol);
        if (item != kDropped) list.items.push_back(item);
      }
      list.End();
      size_t same = first;
      while (!std::ranges::equal(list.at(same), list.at(merged.size()))) ++same;
      if (same == merged.size()) {
        merged.costs.push_back(source_.Cost(keyed.index));
        continue;
      }
      merged.costs[same] += source_.Cost(keyed.index);
      list.begins.pop_back();
      list.items.resize(list.begins.back());
    }
    if (merged.size() > first + 1) SortByContent(first, merged);
  }

  // Different sequences of one key stand in order of the input until now.
  static void SortByContent(size_t first, Database& merged) {
    SequenceList& list = merged.sequences;
    std::vector<std::pair<std::vector<Item>, int64_t>> rows;
    for (size_t i = first; i < merged.size(); ++i) {
      rows.emplace_back(std::vector<Item>(list.at(i).begin(), list.at(i).end()), merged.costs[i]);
    }
    std::ranges::sort(rows);
    list.items.resize(list.begins[first]);
    list.begins.resize(first + 1);
    merged.costs.resize(first);
    for (const auto& [sequence, cost] : rows) {
      list.Add(sequence);
      merged.costs.push_back(cost);
    }
  }

  const Source& source_;
  size_t jobs_;
  std::vector<Keyed> order_;
  std::vector<size_t> begins_;
};

struct InputSource {
  const WeightedSequences& input;
  const SymbolNumbers& numbers;
  const std::vector<Item>& items;

  size_t Size() const { return input.size(); }
  int64_t Cost(size_t i) const { return input.costs[i]; }
  std::span<const uint32_t> At(size_t i) const { return input.at(i); }
  Item Map(Symbol symbol) const { return items[numbers.Of(symbol)]; }
};

struct DatabaseSource {
  const Database& database;
  Item first;

  size_t Size() const { return database.size(); }
  int64_t Cost(size_t i) const { return database.costs[i]; }
  std::span<const uint32_t> At(size_t i) const { return database.sequences.at(i); }
  Item Map(Item item) const { return item < first ? kDropped : item; }
};

// The only item that ever follows (precedes) an item, if there is one and it
// always does.
struct Neighbours {
  static constexpr Item kUnseen = kDropped - 1;
  std::vector<Item> next;
  std::vector<Item> previous;

  Neighbours(const Database& database, size_t items) : next(items, kUnseen), previous(next) {
    for (size_t i = 0; i < database.size(); ++i) {
      const std::span<const Item> sequence = database.sequences.at(i);
      for (size_t j = 0; j < sequence.size(); ++j) {
        Note(next[sequence[j]], j + 1 < sequence.size() ? sequence[j + 1] : kDropped);
        Note(previous[sequence[j]], j > 0 ? sequence[j - 1] : kDropped);
      }
    }
  }
  static void Note(Item& only, Item seen) {
    if (only == kUnseen) {
      only = seen;
    } else if (only != seen) {
      only = kDropped;
    }
  }
  // The item that always comes after this one and never without it.
  Item Successor(Item item) const {
    const Item after = next[item];
    return after < kUnseen && after != item && previous[after] == item ? after : kDropped;
  }
};

// Items joined into chains, which keep the order of their heads; returns for
// each the number of the chain it heads, or kDropped if it is inside one.
std::vector<Item> Chain(const Database& database, const std::vector<Symbol>& symbols,
                        SequenceList& chains) {
  const Neighbours neighbours(database, symbols.size());
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

// Renames in place; what maps to kDropped goes.
void Rename(const std::vector<Item>& names, Database& database) {
  SequenceList& list = database.sequences;
  size_t end = 0;
  size_t begin = 0;
  for (size_t i = 0; i < database.size(); ++i) {
    const size_t next = list.begins[i + 1];
    for (size_t j = begin; j < next; ++j) {
      if (names[list.items[j]] != kDropped) list.items[end++] = names[list.items[j]];
    }
    begin = next;
    list.begins[i + 1] = end;
  }
  list.items.resize(end);
}

}  // namespace

PreparedDatabase Prepare(const WeightedSequences& input, int64_t lambda, size_t jobs) {
  const SymbolNumbers numbers(input.symbols);
  const std::vector<int64_t> costs = SymbolCosts(input, numbers, jobs);
  std::vector<Item> kept;
  for (Item number = 0; number < numbers.count(); ++number) {
    if (costs[number] >= lambda) kept.push_back(number);
  }
  std::ranges::sort(kept, {}, [&](Item number) { return std::pair(costs[number], number); });
  std::vector<Item> items(numbers.count(), kDropped);
  for (Item rank = 0; rank < kept.size(); ++rank) items[kept[rank]] = rank;
  PreparedDatabase prepared;
  const InputSource source{input, numbers, items};
  prepared.database = Merger(source, jobs).Merge();

  for (Item& number : kept) number = numbers.At(number);
  Rename(Chain(prepared.database, kept, prepared.chains), prepared.database);
  return prepared;
}

Database WithoutItemsBelow(const Database& database, Item first, size_t jobs) {
  const DatabaseSource source{database, first};
  return Merger(source, jobs).Merge();
}

}  // namespace culprit::mine
