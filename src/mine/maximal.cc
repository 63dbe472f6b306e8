// SPDX-License-Identifier: Apache-2.0
#include "mine/maximal.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/parallel.h"
#include "mine/branch.h"
#include "mine/budget.h"
#include "mine/database.h"
#include "mine/maximal_set.h"

namespace culprit::mine {
namespace {

// Branches of one batch know the patterns of earlier batches only, whatever
// the number of threads. Small, so that little is found twice; large enough to
// keep threads busy.
constexpr size_t kBatch = 16;

// Merging the database again costs a pass over it; this share of its items must
// have gone since.
constexpr double kGoneShare = 0.25;

// Walks the items from the least costly on. When an item's patterns are found
// it is never needed again and leaves the data.
class Search {
 public:
  Search(const WeightedSequences& sequences, int64_t lambda, size_t jobs, Budget& budget)
      : jobs_(jobs),
        lambda_(lambda),
        budget_(budget),
        prepared_(Prepare(sequences, lambda, jobs)),
        patterns_(prepared_.chains.size()),
        memory_(budget, prepared_.database.Bytes()) {}

  void Run() {
    const auto items = static_cast<Item>(prepared_.chains.size());
    for (Item first = 0; first < items && !budget_.Spent();) {
      const Item end = EpochEnd(first);
      RunEpoch(first, end);
      first = end;
      if (first == items) break;
      prepared_.database = WithoutItemsBelow(prepared_.database, first, jobs_);
    }
  }

  MaximalResult Result() const {
    MaximalResult result;
    result.patterns.resize(patterns_.size());
    for (size_t p = 0; p < patterns_.size(); ++p) {
      result.patterns[p].cost = patterns_.cost(p);
      for (const Item item : patterns_.at(p)) {
        const std::span<const Item> chain = prepared_.chains.at(item);
        std::vector<Symbol>& symbols = result.patterns[p].symbols;
        symbols.insert(symbols.end(), chain.begin(), chain.end());
      }
    }
    std::ranges::sort(result.patterns, [](const Pattern& a, const Pattern& b) {
      return a.cost != b.cost ? a.cost > b.cost : a.symbols < b.symbols;
    });
    return result;
  }

 private:
  // The items that are mined from one state of the database: up to where enough
  // of it has gone to make merging again worth a pass.
  Item EpochEnd(Item first) const {
    const std::vector<Item>& held = prepared_.database.sequences.items;
    std::vector<size_t> occurrences(prepared_.chains.size());
    for (const Item item : held) ++occurrences[item];
    size_t gone = 0;
    Item end = first;
    while (end < occurrences.size() &&
           static_cast<double>(gone) < kGoneShare * static_cast<double>(held.size())) {
      gone += occurrences[end++];
    }
    return end;
  }

  void RunEpoch(Item first, Item end) {
    const SequenceList holders = Holders(first, end);
    const MemoryClaim memory(budget_, holders.Bytes());
    for (Item batch = first; batch < end && !budget_.Spent();) {
      const Item batch_end = std::min<Item>(end, batch + kBatch);
      RunBatch(batch, batch_end, first, holders);
      batch = batch_end;
    }
  }

  // Which sequences hold each item of [first, end).
  SequenceList Holders(Item first, Item end) const {
    const Database& data = prepared_.database;
    std::vector<uint32_t> last_holder(end - first, std::numeric_limits<uint32_t>::max());
    const auto for_each = [&](const auto& visit) {
      std::ranges::fill(last_holder, std::numeric_limits<uint32_t>::max());
      for (uint32_t i = 0; i < data.size(); ++i) {
        for (const Item item : data.sequences.at(i)) {
          if (item >= end || std::exchange(last_holder[item - first], i) == i) continue;
          visit(item - first, i);
        }
      }
    };
    SequenceList holders;
    holders.begins.assign(end - first + 1, 0);
    for_each([&](Item item, uint32_t) { ++holders.begins[item + 1]; });
    std::partial_sum(holders.begins.begin(), holders.begins.end(), holders.begins.begin());
    holders.items.resize(holders.begins.back());
    std::vector<size_t> next = holders.begins;
    for_each([&](Item item, uint32_t i) { holders.items[next[item]++] = i; });
    return holders;
  }

  void RunBatch(Item first, Item end, Item epoch, const SequenceList& holders) {
    std::vector<Candidates> found(end - first);
    std::vector<uint8_t> too_many(end - first);
    ParallelFor(end - first, jobs_, [&](size_t i) {
      if (budget_.Spent()) return;
      Allowance allowance(budget_);
      const auto item = static_cast<Item>(first + i);
      found[i] =
          MineBranch({prepared_.database, holders.at(item - epoch), item, prepared_.chains.size()},
                     patterns_, lambda_, allowance);
      too_many[i] = allowance.too_many() ? 1 : 0;
    });
    patterns_.AddBatch(found);
    memory_.Resize(prepared_.database.Bytes() + patterns_.Bytes());
    const bool cut = std::ranges::find(too_many, 1) != too_many.end();
    if (cut || (budget_.max_patterns() != 0 && patterns_.size() > budget_.max_patterns())) {
      budget_.SpendPatterns();
    }
  }

  size_t jobs_;
  int64_t lambda_;
  Budget& budget_;
  PreparedDatabase prepared_;
  MaximalSet patterns_;
  MemoryClaim memory_;
};

}  // namespace

MaximalResult MineMaximal(const WeightedSequences& sequences, const MaximalOptions& options) {
  Budget budget(options.max_time_ns, options.max_memory_bytes, options.max_patterns);
  Search search(sequences, std::max<int64_t>(options.lambda, 1), options.jobs, budget);
  search.Run();
  MaximalResult result = search.Result();
  if (options.max_patterns != 0 && result.patterns.size() > options.max_patterns) {
    result.patterns.resize(options.max_patterns);
  }
  result.truncated = budget.limit() != Limit::kNone;
  result.why = budget.Why();
  return result;
}

int64_t LambdaForTop(const WeightedSequences& sequences, uint64_t patterns,
                     const MaximalOptions& options) {
  MaximalOptions probe = options;
  // `low` has enough patterns or is 1, `high` has not.
  int64_t low = 1;
  int64_t high = std::accumulate(sequences.costs.begin(), sequences.costs.end(), int64_t{0}) + 1;
  while (low + 1 < high) {
    probe.lambda = low + (high - low) / 2;
    probe.max_patterns = patterns;
    const MaximalResult result = MineMaximal(sequences, probe);
    const bool enough = result.truncated || result.patterns.size() >= patterns;
    (enough ? low : high) = probe.lambda;
  }
  return low;
}

}  // namespace culprit::mine
