// SPDX-License-Identifier: Apache-2.0
//
// Review: how many traces an analyst must open to reach a coverage (StackMine
// §VII, figure 4). Opening a trace shows every behaviour (signature, cluster)
// that cost time in it; what is covered then is the time, over all traces, of
// the behaviours seen so far. Four orders are compared: culprit's (for the
// costliest behaviour not yet seen, the trace in which it costs most), random
// (averaged over many seeded shuffles), and greedy by a trace's total delay and
// by its longest instance. Integer arithmetic, same seed, same curves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stackmine/cover.h"
#include "stackmine/evidence.h"
#include "stackmine/metrics.h"

namespace culprit::stackmine {

// covered_ns[k]: after opening k + 1 traces.
struct ReviewCurve {
  std::vector<int64_t> covered_ns;

  // The number of traces to reach `target_ns`; none if they never do.
  std::optional<uint64_t> TracesFor(int64_t target_ns) const;
};

struct Review {
  ReviewCurve culprit;
  ReviewCurve random;  // the mean of the shuffles
  std::vector<ReviewCurve> shuffles;
  ReviewCurve greedy_total;
  ReviewCurve greedy_max;
  int64_t coverable_ns = 0;  // by all behaviours together

  // The mean number of traces over the shuffles, to the nearest.
  std::optional<uint64_t> RandomTracesFor(int64_t target_ns) const;
};

struct ReviewOptions {
  uint64_t seed = 1;
  uint32_t shuffles = 200;
};

// `metrics` by label, as in the cover.
Review CompareReviews(const Evidence& evidence, const Cover& cover,
                      const std::vector<Metrics>& metrics, const ReviewOptions& options = {});

}  // namespace culprit::stackmine
