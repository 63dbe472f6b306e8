// SPDX-License-Identifier: Apache-2.0
#include "mine/maximal.h"

#include <algorithm>
#include <numeric>

#include "mine/budget.h"
#include "mine/search.h"

namespace culprit::mine {

MaximalResult MineMaximal(const WeightedSequences& sequences, const MaximalOptions& options) {
  Budget budget(options.max_time_ns, options.max_memory_bytes, options.max_patterns);
  Search search(sequences, std::max<int64_t>(options.lambda, 1), options.jobs, budget);
  search.Run();
  MaximalResult result{.patterns = search.Patterns()};
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
