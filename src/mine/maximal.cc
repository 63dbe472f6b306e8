// SPDX-License-Identifier: Apache-2.0
#include "mine/maximal.h"

#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "mine/branch.h"
#include "mine/budget.h"
#include "mine/maximal_set.h"
#include "mine/prepare.h"

namespace culprit::mine {
namespace {

// Takes the items from the least costly on, a batch at a time. When an item's
// patterns are found it is never needed again and leaves the data.
class Search {
 public:
  Search(const WeightedSequences& sequences, int64_t lambda, size_t jobs, Budget& budget)
      : jobs_(jobs),
        lambda_(lambda),
        budget_(budget),
        prepared_(Prepare(sequences, lambda, jobs)),
        patterns_(prepared_.chains.size()),
        memory_(budget, prepared_.queue.Bytes()) {}

  void Run() {
    for (size_t b = 0; b < prepared_.queue.batches() && !budget_.Spent(); ++b) {
      const Batch batch = prepared_.queue.Take(b, jobs_);
      const MemoryClaim memory(budget_, batch.Bytes());
      RunBatch(batch);
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
  // Putting back only reads the batch, so it goes on beside the branches.
  void RunBatch(const Batch& batch) {
    const size_t branches = batch.end - batch.first;
    std::vector<Candidates> found(branches);
    std::vector<uint8_t> too_many(branches);
    ParallelFor(SequenceQueue::kParts + branches, jobs_, [&](size_t task) {
      if (task < SequenceQueue::kParts) {
        prepared_.queue.PutBack(batch, task);
        return;
      }
      if (budget_.Spent()) return;
      Allowance allowance(budget_);
      const size_t i = task - SequenceQueue::kParts;
      found[i] =
          MineBranch({batch, static_cast<Item>(batch.first + i), prepared_.queue.item_count()},
                     patterns_, lambda_, allowance);
      too_many[i] = allowance.too_many() ? 1 : 0;
    });
    patterns_.AddBatch(found);
    memory_.Resize(prepared_.queue.Bytes() + patterns_.Bytes());
    const bool cut = std::ranges::find(too_many, 1) != too_many.end();
    if (cut || (budget_.max_patterns() != 0 && patterns_.size() > budget_.max_patterns())) {
      budget_.SpendPatterns();
    }
  }

  size_t jobs_;
  int64_t lambda_;
  Budget& budget_;
  Prepared prepared_;
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
