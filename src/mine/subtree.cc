// SPDX-License-Identifier: Apache-2.0
#include "mine/subtree.h"

#include <algorithm>
#include <array>
#include <utility>

#include "mine/budget.h"
#include "mine/maximal_set.h"
#include "mine/search.h"

namespace culprit::mine {
namespace {

// Symbols as small numbers, for a table by them.
std::vector<Symbol> DistinctSymbols(const std::vector<Pattern>& patterns) {
  std::vector<Symbol> symbols;
  for (const Pattern& pattern : patterns) {
    symbols.insert(symbols.end(), pattern.symbols.begin(), pattern.symbols.end());
  }
  std::ranges::sort(symbols);
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  return symbols;
}

// Those of `later` that none of `earlier` contains. Which of them have a symbol in
// common with an earlier one decides what is looked at.
std::vector<Pattern> NotContained(const std::vector<Pattern>& earlier, std::vector<Pattern> later) {
  const std::vector<Symbol> symbols = DistinctSymbols(earlier);
  MaximalSet set(symbols.size() + 1);
  const auto add = [&](const std::vector<Pattern>& patterns) {
    std::array<Candidates, 1> batch;
    for (const Pattern& pattern : patterns) {
      for (const Symbol symbol : pattern.symbols) {
        const auto at = std::ranges::lower_bound(symbols, symbol);
        // A symbol that no earlier pattern has is the last number.
        const bool known = at != symbols.end() && *at == symbol;
        batch[0].sequences.items.push_back(known ? static_cast<Item>(at - symbols.begin())
                                                 : static_cast<Item>(symbols.size()));
      }
      batch[0].sequences.End();
      batch[0].costs.push_back(pattern.cost);
    }
    return batch;
  };
  set.AddBatch(add(earlier));
  std::vector<Pattern> kept;
  for (Pattern& pattern : later) {
    const std::array<Candidates, 1> one = add({pattern});
    if (!set.Contains(one[0].sequences.at(0))) kept.push_back(std::move(pattern));
  }
  return kept;
}

}  // namespace

Subtree MineSubtree(const WeightedSequences& sequences, const Piece& piece,
                    const SubtreeOptions& options) {
  Budget budget(0, 0, options.max_patterns);
  Search search(sequences, std::max<int64_t>(options.lambda, 1), options.jobs, budget, piece);
  search.Run();
  return {search.Patterns(), budget.limit() != Limit::kNone};
}

void MergeSubtree(Subtree part, uint64_t max_patterns, Subtree& sum) {
  std::vector<Pattern> added = NotContained(sum.patterns, std::move(part.patterns));
  std::move(added.begin(), added.end(), std::back_inserter(sum.patterns));
  SortCanonically(sum.patterns);
  sum.too_many =
      sum.too_many || part.too_many || (max_patterns != 0 && sum.patterns.size() > max_patterns);
}

MaximalResult MineInPieces(const WeightedSequences& sequences, const MaximalOptions& options,
                           uint64_t pieces) {
  const bool other_budgets = options.max_time_ns != 0 || options.max_memory_bytes != 0;
  if (pieces <= 1 || other_budgets) return MineMaximal(sequences, options);
  Subtree sum;
  for (uint64_t i = 0; i < pieces && !sum.too_many; ++i) {
    MergeSubtree(
        MineSubtree(
            sequences, {i, pieces},
            {.lambda = options.lambda, .jobs = options.jobs, .max_patterns = options.max_patterns}),
        options.max_patterns, sum);
  }
  if (sum.too_many) return MineMaximal(sequences, options);
  return {.patterns = std::move(sum.patterns)};
}

}  // namespace culprit::mine
