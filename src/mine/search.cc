// SPDX-License-Identifier: Apache-2.0
#include "mine/search.h"

#include <algorithm>

#include "base/parallel.h"
#include "mine/branch.h"

namespace culprit::mine {

Search::Search(const WeightedSequences& sequences, int64_t lambda, size_t jobs, Budget& budget,
               const Piece& piece)
    : jobs_(jobs),
      lambda_(lambda),
      budget_(budget),
      prepared_(Prepare(sequences, lambda, jobs, piece)),
      patterns_(prepared_.chains.size()),
      memory_(budget, prepared_.queue.Bytes()) {}

void Search::Run() {
  SequenceQueue& queue = prepared_.queue;
  for (size_t b = queue.first_batch(); b < queue.end_batch() && !budget_.Spent(); ++b) {
    const Batch batch = queue.Take(b, jobs_);
    const MemoryClaim memory(budget_, batch.Bytes());
    RunBatch(batch);
  }
}

std::vector<Pattern> Search::Patterns() const {
  std::vector<Pattern> patterns(patterns_.size());
  for (size_t p = 0; p < patterns.size(); ++p) {
    patterns[p].cost = patterns_.cost(p);
    for (const Item item : patterns_.at(p)) {
      const std::span<const Item> chain = prepared_.chains.at(item);
      patterns[p].symbols.insert(patterns[p].symbols.end(), chain.begin(), chain.end());
    }
  }
  SortCanonically(patterns);
  return patterns;
}

// Putting back only reads the batch, so it goes on beside the branches.
void Search::RunBatch(const Batch& batch) {
  const Item first = std::max(batch.first, prepared_.items.first);
  const size_t branches = std::max(std::min(batch.end, prepared_.items.end), first) - first;
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
    found[i] = MineBranch({batch, static_cast<Item>(first + i), prepared_.queue.item_count()},
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

void SortCanonically(std::vector<Pattern>& patterns) {
  std::ranges::sort(patterns, [](const Pattern& a, const Pattern& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.symbols < b.symbols;
  });
}

}  // namespace culprit::mine
